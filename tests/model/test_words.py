"""Do word-level maps say what a plain sum over tokens says?"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.corpus import Example, Word
from headscope.model.batch import PIECES, Batch, Words, largest
from headscope.run.contract_bench import VOCABULARY, annotated


def example(*sizes: int, name: str = "a") -> Example:
    """[CLS], words of so many tokens each (0: the tokenizer gave it none), [SEP]."""
    index = [-1, *(w for w, size in enumerate(sizes) for _ in range(size)), -1]
    special = np.array(index) < 0
    ids = np.full(len(index), 7)
    words = tuple(Word(f"w{i}") for i in range(len(sizes)))
    return Example(name, name, ids, ids * 0, special, np.array(index), words)


def random_maps(rng: np.random.Generator, examples: list[Example], heads: int = 2) -> np.ndarray:
    n = max(map(len, examples))
    maps = np.zeros((len(examples), heads, n, n))
    for row, e in enumerate(examples):
        raw = rng.random((heads, len(e), len(e))) ** 4
        maps[row, :, : len(e), : len(e)] = raw / raw.sum(-1, keepdims=True)
    return maps


def by_hand(map_: np.ndarray, units: list[list[int]], pieces: str) -> np.ndarray:
    """Clark's procedure for one head of one example, written as loops."""
    to = np.array([[sum(row[t] for t in unit) for unit in units] for row in map_])
    rows = []
    for unit in units:
        if pieces == "mean":
            rows.append(to[unit].mean(0))
        elif pieces == "first":
            rows.append(to[unit[0]])
        else:
            most = to[unit].max(0)
            rows.append(most / most.sum())
    return np.array(rows)


SIZES = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@settings(max_examples=60)
@given(st.lists(SIZES, min_size=1, max_size=3), st.sampled_from(PIECES), st.integers(0, 9))
def test_word_maps_are_sums_to_words_and_means_from_them(all_sizes, pieces, seed):
    examples = [example(*sizes, name=str(k)) for k, sizes in enumerate(all_sizes)]
    maps = random_maps(np.random.default_rng(seed), examples)
    words = Words.of(examples, tokens=maps.shape[-1])
    exact = words.maps(torch.from_numpy(maps), pieces=pieces).numpy()
    single = words.maps(torch.from_numpy(maps.astype(np.float32)), pieces=pieces).numpy()
    for row, sizes in enumerate(all_sizes):
        ends = np.cumsum([1, *(s for s in sizes if s), 1])
        units = [list(range(a, b)) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        n = len(units)
        assert words.count[row] == n
        for head in range(maps.shape[1]):
            wanted = by_hand(maps[row, head, : ends[-1], : ends[-1]], units, pieces)
            np.testing.assert_allclose(exact[row, head, :n, :n], wanted, atol=1e-12)
            np.testing.assert_allclose(single[row, head, :n, :n], wanted, atol=1e-5)
        np.testing.assert_allclose(exact[row, :, :n].sum(-1), 1, atol=1e-12)
        assert not exact[row, :, n:].any()
        assert not single[row, :, n:].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("pieces", PIECES)
def test_a_few_rows_are_those_of_the_whole_map(pieces, dtype):
    examples = [example(1, 2, 1, name="a"), example(2, 0, 1, 1, name="b"), example(1, name="c")]
    maps = torch.from_numpy(random_maps(np.random.default_rng(2), examples)).to(dtype)
    words = Words.of(examples, tokens=maps.shape[-1])
    of = np.array([[3, 1], [2, -1], [-1, -1]])
    whole, rows = words.maps(maps, pieces=pieces), words.maps(maps, pieces=pieces, of=of)
    assert rows.shape == (3, 2, 2, words.most)
    for (row, at), place in np.ndenumerate(of):
        wanted = whole[row, :, place] if place >= 0 else torch.zeros(2, words.most)
        assert torch.equal(rows[row, :, at], wanted.to(dtype))


@settings(max_examples=60)
@given(st.lists(SIZES, min_size=1, max_size=3))
def test_every_token_belongs_to_one_word_or_is_special(all_sizes):
    examples = [example(*sizes) for sizes in all_sizes]
    words = Words.of(examples, tokens=max(map(len, examples)) + 2)
    for row, e in enumerate(examples):
        places = words.of_token[row, : len(e)]
        assert (places >= 0).all()
        assert (words.of_token[row, len(e) :] == -1).all()
        np.testing.assert_array_equal(words.number[row, places], e.word_index)
        special = [int(words.number[row, p]) == -1 for p in places]
        assert special == e.special.tolist()
        assert words.pieces[row].sum() == len(e)
        for number, place in enumerate(words.place[row]):
            assert (place == -1) == (number not in e.word_index)
            assert place == -1 or words.number[row, place] == number


def test_plain_text_has_no_words():
    plain = replace(example(1, 2), words=None, word_index=None)
    words = Words.of([plain, example(1)], tokens=5)
    assert words.count.tolist() == [0, 3]
    assert words.maps(torch.ones(2, 1, 5, 5))[0].sum() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_largest_passes_over_the_word_itself_and_special_tokens(dtype):
    words = Words.of([example(1, 1, 1)], tokens=5)
    maps = torch.tensor(
        [
            [
                [0.9, 0.1, 0.0, 0.0, 0.0],
                [0.2, 0.4, 0.1, 0.3, 0.0],
                [0.5, 0.1, 0.2, 0.1, 0.1],
                [0.1, 0.0, 0.0, 0.1, 0.8],
                [0.0, 0.0, 1.0, 0.0, 0.0],
            ]
        ],
        dtype=dtype,
    )[None]
    to, from_ = largest(maps, words)
    assert to[0, 0].tolist() == [-1, 3, 1, -1, -1]  # the first of equals; no weight, no word
    assert from_[0, 0].tolist() == [-1, 2, 1, 1, -1]


def test_both_ways_of_finding_the_largest_agree():
    rng = np.random.default_rng(3)
    examples = [example(1, 2, 1, 3, name="a"), example(2, 0, 1, name="b"), example(1, name="c")]
    maps = torch.from_numpy(random_maps(rng, examples).astype(np.float32))
    words = Words.of(examples, tokens=maps.shape[-1])
    found = words.maps(maps)
    for single, exact in zip(largest(found, words), largest(found.double(), words), strict=True):
        np.testing.assert_array_equal(single, exact)


def test_a_batch_knows_its_words():
    ids = np.array([2, 8, 9, 10, 3])
    framed = annotated(Example("a", "a", ids, ids * 0, (ids == 2) | (ids == 3)))
    batch = Batch.of([framed], VOCABULARY, replicates=0)
    assert batch.words.count.tolist() == [4]  # [CLS], a word of two tokens, one of one, [SEP]
    assert batch.words.pieces.tolist() == [[1, 2, 1, 1]]
