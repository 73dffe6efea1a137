"""Do the compiled loops over blocks of whole rows give what float64 numpy gives?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp, xlogy

from headscope.model import kernels_of_rows
from headscope.model.long_sums import UNSEEN

HEADS, ROWS = 3, 13


def given(keys: int, *, sinks: bool, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Scores [head, row, key] with hidden keys behind; the score of no key; separators."""
    rng = np.random.default_rng(seed)
    scores = (rng.normal(size=(HEADS, ROWS, keys)) * 6).astype(np.float32)
    scores[:, :, keys - 7 :] = np.where(np.arange(7) > np.arange(ROWS)[:, None], UNSEEN, 0.5)
    sink = rng.normal(size=HEADS) + 9 if sinks else np.full(HEADS, UNSEEN)
    return scores, sink.astype(np.float32), (np.arange(ROWS) % 5 == 0).astype(np.int64)


def weighed(scores: np.ndarray, sink: np.ndarray, separator: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weights, log-sum-exps, entropies and column sums."""
    heads, rows, keys = scores.shape
    weights = scores.copy()
    log_sums, entropy = np.empty((2, heads, rows), np.float32)
    columns = np.empty((heads, 2, keys), np.float32)
    kernels_of_rows.weigh(weights, sink, separator, log_sums, entropy, columns)
    return weights, log_sums, entropy, columns


@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize("keys", [9, 512, 1300])
def test_weights_and_their_sums_are_those_of_float64(keys: int, *, sinks: bool) -> None:
    scores, sink, separator = given(keys, sinks=sinks)
    weights, log_sums, entropy, columns = weighed(scores, sink, separator)
    wide = scores.astype(np.float64)
    column = np.broadcast_to(sink[:, None, None].astype(np.float64), (HEADS, ROWS, 1))
    total = logsumexp(np.concatenate([wide, column], -1), -1)
    alpha = np.exp(wide - total[..., None])
    np.testing.assert_allclose(log_sums, total, atol=2e-6)
    np.testing.assert_allclose(weights, alpha, atol=3e-7)
    np.testing.assert_allclose(entropy, -xlogy(alpha, alpha).sum(-1), atol=4e-6)
    for of in (0, 1):
        wanted = alpha[:, separator == of].sum(1)
        np.testing.assert_allclose(columns[:, of], wanted, atol=1e-6)
    assert (weights[scores == np.float32(UNSEEN)] == 0).all()


def test_even_scores_have_log_n_nats_and_one_large_score_has_none() -> None:
    scores = np.zeros((1, 2, 1000), np.float32)
    scores[0, 1, 3] = 200
    nothing = np.full(1, UNSEEN, np.float32)
    weights, _, entropy, _ = weighed(scores, nothing, np.zeros(2, np.int64))
    assert entropy[0, 0] == pytest.approx(np.log(1000), abs=1e-6)
    assert entropy[0, 1] == 0
    assert weights[0, 1].tolist() == np.eye(1, 1000, 3)[0].tolist()


def test_summed_norms_of_a_block_are_those_of_float64() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(HEADS, 700, 5))
    gram = np.tril(np.einsum("gkd,hkd->kgh", vectors, vectors)).transpose(1, 2, 0)
    weights = rng.random((HEADS, ROWS, 600)).astype(np.float32)
    received = np.ones(600, np.float32)
    kernels_of_rows.add_summed_norms(weights, np.ascontiguousarray(gram, np.float32), 100, received)
    sums = np.einsum("hqk,hkd->qkd", weights.astype(np.float64), vectors[:, 100:])
    np.testing.assert_allclose(received, 1 + np.linalg.norm(sums, axis=-1).sum(0), rtol=2e-6)


def test_one_and_two_threads_give_equal_bits() -> None:
    before, found = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(weighed(*given(700, sinks=True)))
    torch.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        assert one.tobytes() == two.tobytes()
