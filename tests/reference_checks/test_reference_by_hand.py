"""Do the references hold where oracles cannot see: no smoothing, absent categories, one token?"""

from __future__ import annotations

import numpy as np
import pytest

from reference import categories, divergence, entropy, mixing, norms, surface

ONE_HOT = np.eye(4)[None, None]  # [layer, head, query, key]: each token attends to itself
UNIFORM = np.full((1, 1, 4, 4), 0.25)
PREVIOUS = np.eye(4, k=-1)[None, None]
NOBODY = np.zeros(4, dtype=bool)


def test_unsmoothed_entropy_is_zero_for_one_key_and_log_n_for_all() -> None:
    assert entropy.row_entropy(ONE_HOT).max() == 0
    np.testing.assert_allclose(entropy.row_entropy(UNIFORM), np.log(4), rtol=1e-15)


def test_unsmoothed_divergence_is_zero_for_equal_rows_and_ln_2_for_disjoint_ones() -> None:
    maps = np.concatenate([ONE_HOT[0], ONE_HOT[0], np.roll(ONE_HOT[0], 1, axis=2)])
    js = divergence.divergence_means([maps, maps])
    np.testing.assert_allclose(js, np.log(2) * np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]]))


def test_divergence_means_weigh_examples_alike_and_sums_weigh_tokens_alike() -> None:
    far, near = np.stack([np.eye(2), np.eye(2)[::-1]]), np.stack([np.eye(6), np.eye(6)])
    assert divergence.divergence_means([far, near])[0, 1] == pytest.approx(np.log(2) / 2)
    assert divergence.divergence_sums([far, near], smoothing=0)[0, 1] == pytest.approx(
        2 * np.log(2)
    )


def test_edge_tokens_count_in_the_denominator_of_the_neighbours() -> None:
    means = surface.surface_means([PREVIOUS], [NOBODY], [NOBODY], [NOBODY])
    assert means["previous"].item() == 0.75
    assert means["next"].item() == 0


def test_without_separators_attention_to_them_is_zero_and_from_them_undefined() -> None:
    means = surface.surface_means([UNIFORM], [NOBODY], [NOBODY], [NOBODY])
    assert means["sep"].item() == means["sep_from_other"].item() == 0
    assert np.isnan(means["sep_from_sep"]).all()


def test_separator_rows_are_divided_by_their_real_number() -> None:
    one = np.array([False, False, False, True])
    means = surface.surface_means([UNIFORM], [NOBODY], [one], [NOBODY])
    assert means["sep_from_sep"].item() == means["sep_from_other"].item() == 0.25


def test_an_absent_category_counts_as_zero_attention_and_skips_the_value_norm() -> None:
    there, absent = np.array([True, False, False, False]), NOBODY
    value_norms = [np.full((1, 1, 4), 3.0), np.full((1, 1, 4), 5.0)]
    assert norms.category_sum([UNIFORM, UNIFORM], [there, absent]).item() == 0.125
    assert norms.category_mean(value_norms, [there, absent]).item() == 3
    assert np.isnan(norms.category_mean(value_norms, [absent, absent])).all()


def test_the_weighted_norm_is_the_norm_of_the_weighted_vector() -> None:
    rng = np.random.default_rng(0)
    attention, f = rng.random((2, 3, 5, 5)), rng.normal(size=(2, 3, 5, 7))
    vectors = attention[..., None] * f[:, :, None]  # [layer, head, query, key, d]
    np.testing.assert_allclose(
        norms.weighted_norm(attention, f), np.linalg.norm(vectors, axis=-1), rtol=1e-13
    )
    np.testing.assert_allclose(
        norms.layer_weighted_norm(attention, f),
        np.linalg.norm(vectors.sum(axis=1), axis=-1),
        rtol=1e-13,
    )


def test_a_token_alone_mixes_nothing_in() -> None:
    vector = np.array([[[1.0, 2.0, 3.0]]])  # [query, key, d]
    assert mixing.vector_ratio(vector).tolist() == [0]


def test_segment_ids_change_after_the_first_separator() -> None:
    tokens = ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    assert categories.segment_ids(tokens).tolist() == [0, 0, 0, 1, 1]
    assert categories.segment_ids(tokens, convention="zeros").tolist() == [0] * 5
