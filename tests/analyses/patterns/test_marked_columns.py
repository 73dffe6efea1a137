"""Do columns of special tokens make a map vertical, and those of content words not?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from analyses.running import run
from headscope.analyses.patterns.classes import (
    CONTENT,
    NAMES,
    PUNCTUATION,
    SPECIAL,
    kinds_of,
    second_of,
)
from headscope.analyses.patterns.map_features import NAMED, features
from headscope.analyses.patterns.measure import MarkedColumns
from headscope.analyses.patterns.measure_marked import COUNT, read_marked
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.run.contract_bench import tiny_network

SIDE, MIDDLE = 30, 16
STOP = 5  # a token that is punctuation


def example(*, pair=False, special=True):
    """[CLS] … . [SEP], or two sentences so."""
    ids, marked = np.full(SIDE, 9), np.zeros(SIDE, bool)
    segments = np.zeros(SIDE, np.int64)
    ids[SIDE - 2] = STOP
    if special:
        marked[[0, SIDE - 1]] = True
    if pair:
        marked[MIDDLE - 1] = special
        segments[MIDDLE:] = 1
    return Example("e", "d", ids, segments, marked)


def columns(*places):
    """Two thirds of every row on these columns, the rest anywhere."""
    weights = np.random.default_rng(0).dirichlet(np.full(SIDE, 2.0), SIDE) / 3
    weights[:, list(places)] += 2 / 3 / len(places)
    return weights


def squares(edge):
    """Attention within two parts of the input that meet at `edge`."""
    part = np.arange(SIDE) >= edge
    weights = np.where(part[:, None] == part, 1.0, 0.02)
    weights = weights * np.random.default_rng(0).uniform(0.7, 1, (SIDE, SIDE))
    return weights / weights.sum(1, keepdims=True)


def told(weights, one):
    maps = [torch.from_numpy(weights[None].astype(np.float32))]
    probabilities, punctuation = MarkedColumns("").classify(maps, [one], frozenset({STOP}))
    return NAMES[int(probabilities[0, 0].argmax())], bool(punctuation[0, 0])


def test_columns_of_special_tokens_make_a_map_vertical_and_those_of_words_do_not():
    assert told(columns(0, SIDE - 1), example()) == ("vertical", False)
    assert told(columns(7, 19), example())[0] == "heterogeneous"


def test_the_same_map_is_of_another_class_where_its_columns_are_marked():
    on_words = np.zeros(SIDE, bool)
    on_words[[7, 19]] = True
    plain = example()
    marked = Example("e", "d", plain.input_ids, plain.segment_ids, on_words)
    assert told(columns(7, 19), marked)[0] == "vertical"


def test_columns_of_punctuation_are_vertical_and_named_apart():
    assert told(columns(SIDE - 2), example()) == ("vertical", True)


def test_a_line_is_a_diagonal_and_with_a_special_column_both():
    line = 0.85 * np.eye(SIDE) + 0.15 / SIDE
    assert told(line, example())[0] == "diagonal"
    both = 0.3 * np.eye(SIDE) + 0.7 * columns(0, SIDE - 1)
    assert told(both, example())[0] == "vertical_diagonal"


def test_squares_are_blocks_only_where_the_second_sentence_begins():
    assert told(squares(MIDDLE), example(pair=True))[0] == "block"
    assert told(squares(MIDDLE), example())[0] != "block"
    assert told(squares(9), example(pair=True))[0] != "block"


def test_kinds_are_told_from_the_ids_and_the_first_token_stands_in_for_special_ones():
    kinds = kinds_of(example(), frozenset({STOP}))
    assert np.flatnonzero(kinds == SPECIAL).tolist() == [0, SIDE - 1]
    assert np.flatnonzero(kinds == PUNCTUATION).tolist() == [SIDE - 2]
    without = kinds_of(example(special=False), frozenset({STOP}))
    assert np.flatnonzero(without == SPECIAL).tolist() == [0]
    assert second_of(example(pair=True)) == MIDDLE
    assert second_of(example()) == 0


def test_features_are_those_of_their_names():
    weights, one = columns(0, SIDE - 1), example(pair=True)
    kinds = kinds_of(one, frozenset({STOP}))
    found = dict(
        zip(NAMED, features(weights.astype(np.float32)[None], kinds, MIDDLE)[0], strict=True)
    )
    shares = weights.sum(0) / SIDE
    ink = np.sqrt(weights / weights.max())
    assert found["special_weight"] == pytest.approx(shares[kinds == SPECIAL].sum(), abs=1e-5)
    assert found["punctuation_weight"] == pytest.approx(shares[SIDE - 2], abs=1e-5)
    assert found["special_ink"] == pytest.approx(ink[:, kinds == SPECIAL].mean(), abs=1e-5)
    assert found["content_ink_most"] == pytest.approx(
        ink[:, kinds == CONTENT].mean(0).max(), abs=1e-5
    )
    inner, words = kinds != SPECIAL, kinds == CONTENT
    side = np.arange(SIDE) >= MIDDLE
    seen = inner[:, None] & words
    own = seen & (side[:, None] == side)
    assert found["own_weight"] == pytest.approx(weights[own].sum() / weights[seen].sum(), abs=1e-5)
    assert found["own_ink"] == pytest.approx(ink[own].mean(), abs=1e-5)
    lag = np.subtract.outer(-np.arange(SIDE), -np.arange(SIDE))  # key - query
    at = seen & (lag == -1)
    assert found["weight_lag-1"] == pytest.approx(weights[at].sum() / inner.sum(), abs=1e-5)
    assert found["ink_lag-1"] == pytest.approx(ink[at].mean(), abs=1e-5)
    assert found["pair"] == 1
    assert found["causal"] == 0


def test_shares_unsure_and_punctuation_are_counts_of_maps():
    options = {"patterns": {"least_tokens": 2}}
    dataset = run(options, network=tiny_network(torch.float32), size=3)["patterns"]
    assert dataset.attrs["columns"] == "special"
    whole = dataset.share.sum("pattern") + dataset.unsure
    np.testing.assert_allclose(whole, 1, atol=1e-12)
    columned = dataset.share.sel(pattern=["vertical", "vertical_diagonal"]).sum("pattern")
    assert (dataset.punctuation <= columned + 1e-12).all()


def test_the_threshold_leaves_the_unsure_without_a_class():
    network, _ = read_marked()
    assert 0.2 < float(network.threshold) < 1
    probabilities = network.classify(np.zeros((3, COUNT), np.float32))
    np.testing.assert_allclose(probabilities.sum(1), 1)


def test_what_is_no_classifier_is_refused(tmp_path):
    with pytest.raises(InputError, match="wanted a folder"):
        read_marked(tmp_path)
