"""Is the bundled demo treebank well formed, and does it hold what it promises?

The file is read with the `conllu` package, not with headscope's own reader, so that a mistake
of ours in both places cannot hide itself.
"""

from __future__ import annotations

import bz2
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import conllu
import pytest
from conllu.models import Token, TokenList

TEXT = bz2.decompress((files("headscope.corpus") / "demo.conllu.bz2").read_bytes()).decode()
TEXTS = {text.split("\n", 1)[0]: text for text in re.split(r"(?m)^(?=# newdoc)", TEXT) if text}
NAMES = [opening.rpartition(" ")[2] for opening in TEXTS]


def listed(names: str) -> frozenset[str]:
    """The names in a blank-separated list."""
    return frozenset(names.split())


# The 17 parts of speech of Universal Dependencies, version 2.
UPOS = listed("ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X")
# The Penn Treebank tags, with the punctuation and hyphen tags of the English Web Treebank.
XPOS = listed(
    "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH "
    "VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB AFX ADD GW HYPH NFP -LRB- -RRB- . , : `` '' $ #"
)
# The 37 universal relations, and the subtypes that English treebanks use.
RELATIONS = listed(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse "
    "dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis "
    "punct reparandum root vocative xcomp "
    "acl:relcl advcl:relcl aux:pass cc:preconj compound:prt csubj:outer csubj:pass det:predet "
    "nmod:desc nmod:poss nmod:unmarked nsubj:outer nsubj:pass obl:agent obl:unmarked"
)
# A function word has no dependents, except that it may head a fixed phrase or be modified.
FUNCTION = {"aux", "aux:pass", "case", "cc", "cc:preconj", "cop", "det", "mark", "punct"}
ALLOWED_BELOW_FUNCTION = {"fixed", "advmod"}

# One piece of an Entity value: an opening, a whole one-word mention, or a closing bracket.
BRACKET = re.compile(
    r"\((?P<open>\w+)-(?P<kind>\w+)-(?P<head>\d+)-?(?P<single>\))?|(?P<close>\w+)\)"
)


@dataclass(frozen=True)
class Span:
    """One mention as annotated: words first..last of a sentence (1-based), head within the span."""

    entity: str
    kind: str
    first: int
    last: int
    head: int

    def head_word(self, sentence: TokenList) -> Token:
        """The word that the annotation calls the head."""
        return sentence[self.first + self.head - 2]


@cache
def read(name: str) -> tuple[TokenList, ...]:
    """The sentences of one document."""
    return tuple(conllu.parse(TEXTS[f"# newdoc id = {name}"]))


def every_sentence() -> Iterator[TokenList]:
    """The sentences of all documents, in order."""
    for name in NAMES:
        yield from read(name)


def place(sentence: TokenList, word: Token | None = None) -> str:
    """Where to look: sentence id, and the word with its number."""
    where = str(sentence.metadata.get("sent_id", "a sentence without sent_id"))
    return f"{where}, word {word['id']} {word['form']!r}" if word else where


def spans(sentence: TokenList) -> list[Span]:
    """The mentions of a sentence; fails on brackets that are malformed or unbalanced."""
    found: list[Span] = []
    waiting: list[tuple[str, str, int, int]] = []
    for word in sentence:
        value = (word["misc"] or {}).get("Entity", "")
        pieces = list(BRACKET.finditer(value))
        unread = "".join(piece[0] for piece in pieces) != value
        assert not unread, f"{place(sentence, word)}: cannot read Entity={value}"
        for piece in pieces:
            if piece["open"]:
                waiting.append((piece["open"], piece["kind"], word["id"], int(piece["head"])))
            closed = piece["open"] if piece["single"] else piece["close"]
            if closed:
                fitting = [entry for entry in reversed(waiting) if entry[0] == closed]
                assert fitting, f"{place(sentence, word)}: {closed} is closed but was never opened"
                waiting.remove(fitting[0])
                entity, kind, first, head = fitting[0]
                found.append(Span(entity, kind, first, word["id"], head))
    assert not waiting, f"{place(sentence)}: never closed: {waiting}"
    return found


def is_below(sentence: TokenList, word: Token, target: int) -> bool:
    """Whether a word is, or depends directly or indirectly on, word number `target`."""
    at = word["id"]
    for _ in sentence:  # no path up a tree is longer than this
        if at in (0, target):
            break
        at = sentence[at - 1]["head"]
    return bool(at == target)


# Size and frame ---------------------------------------------------------------------------------


def test_there_are_at_least_twelve_documents() -> None:
    assert len(NAMES) >= 12, f"only {NAMES}"


def test_there_are_at_least_160_sentences() -> None:
    assert sum(len(read(name)) for name in NAMES) >= 160


def test_no_sentence_is_repeated() -> None:
    counts = Counter(sentence.metadata["text"] for sentence in every_sentence())
    assert not [text for text, count in counts.items() if count > 1]


@pytest.mark.parametrize("name", NAMES)
def test_a_document_has_about_a_dozen_sentences(name: str) -> None:
    assert 10 <= len(read(name)) <= 16, f"{name} has {len(read(name))} sentences"


@pytest.mark.parametrize("name", NAMES)
def test_a_document_opens_with_its_id_and_the_entity_format(name: str) -> None:
    assert name == f"demo-{NAMES.index(name) + 1:02d}"
    lines = TEXTS[f"# newdoc id = {name}"].splitlines()
    assert lines[1] == "# global.Entity = eid-etype-head-other"


@pytest.mark.parametrize("name", NAMES)
def test_sentences_are_numbered_from_01_without_gaps(name: str) -> None:
    found = [sentence.metadata.get("sent_id") for sentence in read(name)]
    assert found == [f"{name}-{i:02d}" for i in range(1, len(found) + 1)]


@pytest.mark.parametrize("name", NAMES)
def test_each_row_is_one_word_with_ten_columns(name: str) -> None:
    for number, line in enumerate(TEXTS[f"# newdoc id = {name}"].splitlines(), 1):
        if line and not line.startswith("#"):
            columns = line.split("\t")
            assert len(columns) == 10, f"{name}, line {number}: {len(columns)} columns"
            assert columns[0].isdigit(), f"{name}, line {number}: id {columns[0]!r} is no word"
            assert all(columns), f"{name}, line {number}: an empty column; write _"


@pytest.mark.parametrize("name", NAMES)
def test_each_sentence_is_a_tree_with_one_root(name: str) -> None:
    for sentence in read(name):
        numbers = [word["id"] for word in sentence]
        assert numbers == list(range(1, len(sentence) + 1)), place(sentence)
        for word in sentence:
            assert 0 <= word["head"] <= len(sentence), f"{place(sentence, word)}: head out of range"
            at, steps = word["id"], 0
            while at != 0:
                at, steps = sentence[at - 1]["head"], steps + 1
                assert steps <= len(sentence), f"{place(sentence, word)}: heads run in a circle"
        roots = [word["form"] for word in sentence if word["head"] == 0]
        assert len(roots) == 1, f"{place(sentence)}: roots {roots}"


@pytest.mark.parametrize("name", NAMES)
def test_the_root_relation_marks_the_root_and_nothing_else(name: str) -> None:
    for sentence in read(name):
        for word in sentence:
            assert (word["head"] == 0) == (word["deprel"] == "root"), place(sentence, word)


@pytest.mark.parametrize("name", NAMES)
def test_the_text_equals_the_forms(name: str) -> None:
    for sentence in read(name):
        joined = "".join(
            word["form"] + ("" if (word["misc"] or {}).get("SpaceAfter") == "No" else " ")
            for word in sentence
        )
        assert joined.rstrip() == sentence.metadata["text"], place(sentence)


@pytest.mark.parametrize("name", NAMES)
def test_tags_and_relations_are_known(name: str) -> None:
    for sentence in read(name):
        for word in sentence:
            assert word["upos"] in UPOS, f"{place(sentence, word)}: UPOS {word['upos']!r}"
            assert word["xpos"] in XPOS, f"{place(sentence, word)}: XPOS {word['xpos']!r}"
            assert word["deprel"] in RELATIONS, f"{place(sentence, word)}: {word['deprel']!r}"
            assert word["lemma"] not in (None, "_"), f"{place(sentence, word)}: no lemma"


@pytest.mark.parametrize("name", NAMES)
def test_the_tag_punct_and_the_relation_punct_go_together(name: str) -> None:
    for sentence in read(name):
        for word in sentence:
            same = (word["upos"] == "PUNCT") == (word["deprel"] == "punct")
            assert same, f"{place(sentence, word)}: {word['upos']} as {word['deprel']}"


@pytest.mark.parametrize("name", NAMES)
def test_function_words_have_no_dependents(name: str) -> None:
    for sentence in read(name):
        for word in sentence:
            if word["head"] and sentence[word["head"] - 1]["deprel"] in FUNCTION:
                head = sentence[word["head"] - 1]
                assert word["deprel"] in ALLOWED_BELOW_FUNCTION, (
                    f"{place(sentence, word)}: {word['deprel']} of {head['form']!r},"
                    f" which is {head['deprel']}"
                )


def test_at_least_99_arcs_in_a_hundred_are_projective() -> None:
    crossed, arcs = [], 0
    for sentence in every_sentence():
        for word in sentence:
            if not word["head"]:
                continue
            arcs += 1
            low, high = sorted((word["id"], word["head"]))
            if not all(is_below(sentence, w, word["head"]) for w in sentence[low : high - 1]):
                crossed.append(place(sentence, word))
    assert len(crossed) <= 0.01 * arcs, crossed


@pytest.mark.parametrize("name", NAMES)
def test_entity_brackets_balance_and_heads_lie_inside(name: str) -> None:
    for sentence in read(name):
        for span in spans(sentence):
            assert 1 <= span.head <= span.last - span.first + 1, f"{place(sentence)}: {span}"


@pytest.mark.parametrize("name", NAMES)
def test_the_head_of_a_mention_is_the_word_that_hangs_outside_it(name: str) -> None:
    for sentence in read(name):
        for span in spans(sentence):
            inside = range(span.first, span.last + 1)
            outward = [i for i in inside if sentence[i - 1]["head"] not in inside]
            assert outward == [span.first + span.head - 1], f"{place(sentence)}: {span}"


@pytest.mark.parametrize("name", NAMES)
def test_an_entity_keeps_its_type(name: str) -> None:
    kinds: dict[str, str] = {}
    for sentence in read(name):
        for span in spans(sentence):
            kind = kinds.setdefault(span.entity, span.kind)
            assert span.kind == kind, f"{place(sentence)}: {span}, but it was {kind} before"


@pytest.mark.parametrize("name", NAMES)
def test_a_document_has_three_chains_of_two_mentions(name: str) -> None:
    sizes = Counter(span.entity for sentence in read(name) for span in spans(sentence))
    chains = [entity for entity, size in sizes.items() if size >= 2]
    assert len(chains) >= 3, f"{name}: mentions per entity {dict(sizes)}"


@pytest.mark.parametrize("name", NAMES)
def test_some_pronoun_follows_a_noun_of_its_chain(name: str) -> None:
    seen_nouns: set[str] = set()
    resolved = 0
    for sentence in read(name):
        for span in sorted(spans(sentence), key=lambda span: span.first):
            upos = span.head_word(sentence)["upos"]
            resolved += upos == "PRON" and span.entity in seen_nouns
            if upos in ("NOUN", "PROPN"):
                seen_nouns.add(span.entity)
    assert resolved >= 3, f"{name}: {resolved} pronouns have a noun before them in their chain"


@pytest.mark.parametrize(("upos", "least"), [("PRON", 60), ("PROPN", 20), ("NOUN", 40)])
def test_mentions_are_pronouns_names_and_nominals(upos: str, least: int) -> None:
    heads = Counter(
        span.head_word(sentence)["upos"]
        for sentence in every_sentence()
        for span in spans(sentence)
    )
    assert heads[upos] >= least, f"{upos}: {heads[upos]} mentions of {dict(heads)}"


# Phenomena --------------------------------------------------------------------------------------

Finder = Callable[[TokenList], int]


def words(test: Callable[[Token], bool]) -> Finder:
    """Counts the words of a sentence that pass a test."""
    return lambda sentence: sum(test(word) for word in sentence)


def relation(*names: str) -> Finder:
    """Counts the words that bear one of these relations."""
    return words(lambda word: word["deprel"] in names)


def is_question(sentence: TokenList) -> bool:
    """Whether a sentence holds a question mark."""
    return any(word["form"] == "?" for word in sentence)


def asks_with_wh(sentence: TokenList) -> bool:
    """Whether a sentence is a question with a wh-word that is not a relative pronoun."""
    first = next(word for word in sentence if word["upos"] != "PUNCT")
    return is_question(sentence) and first["xpos"] in {"WDT", "WP", "WP$", "WRB"}


def is_imperative(sentence: TokenList) -> bool:
    """Whether the root is a bare verb without a subject or a modal."""
    root = next(word for word in sentence if word["head"] == 0)
    below = [word for word in sentence if word["head"] == root["id"]]
    bare = root["xpos"] == "VB" and not is_question(sentence)
    return bare and not any(
        word["deprel"].startswith(("nsubj", "csubj")) or word["xpos"] == "MD" for word in below
    )


NEGATIVES = {"not", "never", "no", "nobody", "nothing", "none", "neither", "nor", "nowhere"}

PHENOMENA: dict[str, tuple[Finder, int]] = {
    "passive subjects": (relation("nsubj:pass", "csubj:pass"), 20),
    "agents of passives": (relation("obl:agent"), 10),
    "relative clauses": (relation("acl:relcl", "advcl:relcl"), 25),
    "negative words": (words(lambda word: word["lemma"].lower() in NEGATIVES), 20),
    "contracted not": (words(lambda word: word["form"].lower() in {"n't", "n’t"}), 3),
    "verb particles": (relation("compound:prt"), 20),
    "possessive pronouns": (words(lambda word: word["xpos"] in {"PRP$", "WP$"}), 30),
    "possessive 's": (words(lambda word: word["xpos"] == "POS"), 8),
    "questions": (is_question, 20),
    "questions with a wh-word": (asks_with_wh, 10),
    "questions to be answered by yes or no": (
        lambda sentence: is_question(sentence) and not asks_with_wh(sentence),
        6,
    ),
    "indirect objects": (relation("iobj"), 15),
    "direct objects": (relation("obj"), 120),
    "determiners": (relation("det"), 180),
    "objects of prepositions": (relation("obl", "nmod"), 120),
    "coordinations": (relation("conj"), 60),
    "clausal complements": (relation("ccomp"), 15),
    "open complements": (relation("xcomp"), 25),
    "adverbial clauses": (relation("advcl"), 30),
    "participial and other clauses on nouns": (relation("acl"), 3),
    "expletives": (relation("expl"), 8),
    "copulas": (relation("cop"), 35),
    "appositions": (relation("appos"), 10),
    "numbers": (relation("nummod"), 25),
    "names of several words": (relation("flat"), 15),
    "compound nouns": (relation("compound"), 25),
    "imperatives": (is_imperative, 10),
    "sentences with quoted speech": (
        lambda sentence: any(word["xpos"] == "``" for word in sentence),
        10,
    ),
}


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_the_corpus_holds_each_promised_phenomenon(phenomenon: str) -> None:
    count, least = PHENOMENA[phenomenon]
    found = sum(count(sentence) for sentence in every_sentence())
    assert found >= least, f"{phenomenon}: found {found}, promised {least}"


@pytest.mark.parametrize("name", NAMES)
def test_a_possessive_s_is_the_case_of_a_possessor(name: str) -> None:
    for sentence in read(name):
        for word in sentence:
            if word["xpos"] == "POS":
                assert word["deprel"] == "case", place(sentence, word)
                owner = sentence[word["head"] - 1]
                assert owner["deprel"] == "nmod:poss", place(sentence, owner)


@pytest.mark.parametrize("name", NAMES)
def test_a_passive_subject_has_a_passive_auxiliary_beside_it(name: str) -> None:
    for sentence in read(name):
        for word in sentence:
            if word["deprel"] == "nsubj:pass":
                beside = {w["deprel"] for w in sentence if w["head"] == word["head"]}
                assert "aux:pass" in beside, place(sentence, word)
