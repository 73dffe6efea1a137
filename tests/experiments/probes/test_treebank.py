"""Are sentences of treebanks read with their trees, and the rest refused or counted?"""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.probes.made import encoder, rows, split_of, tiny, treebank
from headscope.errors import CorpusError, InputError
from headscope.experiments.probes.probe_plan import overlap_note, read_splits
from headscope.experiments.probes.settings import ProbeSettings


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("tiny"))


def written(folder: Path, text: str, name: str = "t.conllu") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def test_heads_count_from_one_and_the_root_is_nought(model, tmp_path: Path) -> None:
    text = rows(["the", "cats", "."], [2, 0, 2], ["det", "root", "punct"])
    (sentence,) = split_of(model, written(tmp_path, text)).sentences
    assert sentence.head.tolist() == [2, 0, 2]
    assert sentence.relations == ("det", "root", "punct")
    assert sentence.scored.tolist() == [True, True, False]
    assert sentence.place.tolist() == [1, 2, 3], "behind [CLS]"
    assert len(sentence.example) == 6, "[CLS] the cat ##s . [SEP]"


def test_words_whose_head_is_in_another_window_are_not_asked_for(model, tmp_path: Path) -> None:
    path = written(tmp_path, rows(["a"] * 8, [0, 1, 2, 8, 8, 8, 8, 1]))
    split = split_of(model, path, max_length=6)
    assert split.counts.windowed == 1
    assert [s.head.tolist() for s in split.sentences] == [[0, 1, 2, -1], [4, 4, 4, -1]]
    assert [s.depth.tolist() for s in split.sentences] == [[0, 1, 2, 2], [2, 2, 2, 1]]
    skipped = split_of(
        model,
        written(tmp_path, path.read_text() + rows(["a", "b"], [0, 1])),
        max_length=6,
        long="skip",
    )
    assert (len(skipped.sentences), skipped.counts.skipped) == (1, 1)


def test_a_limit_draws_sentences_by_the_seed(model, tmp_path: Path) -> None:
    from headscope.experiments.probes.trees import read_split

    path = treebank(tmp_path / "t.conllu", 20)

    def ids(seed: int) -> list[str]:
        split = read_split("train", [path], encoder(model), limit=5, seed=seed)
        return [sentence.example.id for sentence in split.sentences]

    assert ids(0) == ids(0) != ids(1)
    assert len(ids(0)) == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("1\tcat\t_\tX\t_\t_\t_\t_\t_\t_\n\n", "the head"),
        ("1\tcat\t_\tX\t_\t_\t0\t_\t_\t_\n\n", "has a tree"),
    ],
)
def test_treebanks_without_trees_are_refused(model, tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises((InputError, CorpusError), match=says):
        split_of(model, written(tmp_path, text))


def test_one_file_cannot_be_learned_from_and_tested_on(model, tmp_path: Path) -> None:
    path = treebank(tmp_path / "t.conllu", 3)
    copy = written(tmp_path, path.read_text(), "copy.conllu")
    with pytest.raises(InputError, match="are the same file"):
        read_splits(model, {"train": [path], "test": [copy]}, ProbeSettings(), ("attention",))


@pytest.mark.parametrize(("more", "says"), [(0, None), (2, "3 of 5 test sentences are in the")])
def test_test_sentences_of_the_training_data_are_told_and_refused_if_all_are(
    model, tmp_path: Path, more: int, says: str | None
) -> None:
    train = treebank(tmp_path / "a.conllu", 3, words=(6, 9))
    other = treebank(tmp_path / "b.conllu", 3, seed=1, words=(6, 9)).read_text()
    text = train.read_text() + "\n\n".join(other.split("\n\n")[:more]) + "\n\n"
    files = {"train": [train], "test": [written(tmp_path, "# a copy\n" + text)]}
    splits = read_splits(model, files, ProbeSettings(), ("attention",))
    if says is None:
        with pytest.raises(InputError, match="all 3 test sentences are in the training data"):
            overlap_note(splits)
    else:
        assert says in overlap_note(splits)[0]
    assert overlap_note((splits[1], splits[1], splits[2])) == ()


def test_a_tenth_of_train_is_held_out_only_where_it_is_needed(model, tmp_path: Path) -> None:
    files = {
        "train": [treebank(tmp_path / "a.conllu", 20)],
        "test": [treebank(tmp_path / "b.conllu", 3, seed=1)],
    }
    for settings, probes, wanted in [
        (ProbeSettings(), ("attention",), (20, 0, 3)),
        (ProbeSettings(epochs=2), ("attention",), (18, 2, 3)),
        (ProbeSettings(), ("attention", "structural"), (18, 2, 3)),
    ]:
        splits = read_splits(model, files, settings, probes)
        assert tuple(len(split.sentences) for split in splits) == wanted
    names = [{s.example.id for s in split.sentences} for split in splits]
    assert not names[0] & names[1]
