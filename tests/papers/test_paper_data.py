"""Are data found by --data and --substitutes, and is it said where the rest is to be had?"""

from __future__ import annotations

import pytest

from headscope.corpus.treebank import HeadLabelCorpus, is_head_label
from headscope.errors import CorpusError, InputError
from headscope.papers.paper_data import KEYS, find_data
from headscope.papers.quantities import Unmeasured
from headscope.papers.workspace import Workspace


@pytest.fixture
def public(tmp_path):
    """Empty files, named as their projects name them."""
    for name in (
        "ewt/en_ewt-ud-dev.conllu",
        "ewt/en_ewt-ud-test.conllu",
        "wikitext2/valid.txt",
        "litbank/a_brat.conll",
        "litbank/b_brat.conll",
        "fn/framenet_v15/luIndex.xml",
        "fn/framenet_v17/luIndex.xml",
        "glue_data/RTE/dev.tsv",
        "deep/er/rank_count_ids.txt",
    ):
        file = tmp_path / "public" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "public"


def test_public_sets_are_recognised_by_their_own_file_names(public):
    data = find_data([], public)
    names = {key: [p.name for p in source.paths] for key, source in data.sources.items()}
    assert names["treebank"] == ["en_ewt-ud-dev.conllu"]
    assert names["coref"] == ["a_brat.conll", "b_brat.conll"]
    assert names["frames"] == ["framenet_v17"]
    assert names["glue"] == ["glue_data"]
    assert names["text"] == ["valid.txt"]
    assert "segments" not in names
    assert data.need("treebank").elsewhere == "Universal Dependencies"
    assert data.need("frames").elsewhere == ""


def test_what_the_user_names_comes_before_a_substitute(public, tmp_path):
    (tmp_path / "ptb.conllx").touch()
    data = find_data([f"treebank={tmp_path / 'ptb.conllx'}"], public)
    assert data.need("treebank").elsewhere == ""
    assert data.need("treebank").name == "ptb.conllx"


def test_what_is_not_there_says_what_is_wanted_and_where_to_get_it():
    data = find_data([], None)
    for key, kind in KEYS.items():
        with pytest.raises(Unmeasured) as error:
            data.need(key)
        assert f"needs {key}: {kind.what}; {kind.where}" == str(error.value)
        signs = ("https://", "headscope ", "pip ", "python ")
        assert any(sign in kind.where for sign in signs)


def test_of_a_folder_the_files_that_have_known_names_are_taken(public):
    data = find_data([f"coref={public / 'litbank'}", f"treebank={public / 'ewt'}"], None)
    assert [p.name for p in data.need("coref").paths] == ["a_brat.conll", "b_brat.conll"]
    assert data.need("treebank").name == "en_ewt-ud-dev.conllu"


def test_a_folder_without_such_data_is_refused(tmp_path):
    with pytest.raises(InputError, match="no file with a known name"):
        find_data([f"text={tmp_path}"], None)
    with pytest.raises(InputError, match="no file with a known name"):
        find_data([], tmp_path)
    (tmp_path / "x").touch()
    with pytest.raises(InputError, match="a folder is wanted: FrameNet"):
        find_data([f"frames={tmp_path / 'x'}"], None)


WRONG = (("tree=x", "there are text"), ("text", "KEY=PATH"), ("text=nowhere", "does not exist"))


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_a_wrong_key_or_path_is_refused(text, told):
    with pytest.raises(InputError, match=told):
        find_data([text], None)


def test_the_layout_of_the_released_code_is_read_with_its_last_sentence_and_dashed_labels(tmp_path):
    file = tmp_path / "dev.txt"
    file.write_text("The 2-det\ncat 3-nsubj\nsat 0-root\n\nGo 0-root\nnow 1-tmod-x", "utf-8")
    assert is_head_label(file)
    first, second = HeadLabelCorpus(file)
    assert [w.head for w in first.passages[0].words] == [1, 2, -1]
    assert [w.relation for w in second.passages[0].words] == ["root", "tmod-x"]


@pytest.mark.parametrize("row", ["cat nsubj", "cat 9-nsubj", "cat"])
def test_a_malformed_row_is_named_with_its_line(tmp_path, row):
    file = tmp_path / "dev.txt"
    file.write_text(f"The 2-det\n{row}\n", "utf-8")
    with pytest.raises(CorpusError, match=r"dev\.txt:2: .*wanted a word and head-label"):
        list(HeadLabelCorpus(file))


@pytest.mark.parametrize("kept", [False, True])
def test_runs_of_a_paper_keep_their_shards_only_if_asked(kept, tmp_path):
    asked = Workspace("demo", find_data([], None), tmp_path, keep_shards=kept)
    assert asked.execution.keep_shards is kept
