"""Do products and flows through layers give what can be worked out by hand and by others?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headscope.analyses.flow.measure_one_text import MOST_TOKENS, UNITS, max_flow, rollout
from headscope.errors import InputError

networkx = pytest.importorskip("networkx")


def some(layers: int, tokens: int, *, seed: int = 0, residual: float = 0.5) -> np.ndarray:
    """[layer, query, key] sharp rows that sum to 1."""
    rows = np.random.default_rng(seed).dirichlet(np.full(tokens, 0.3), size=(layers, tokens))
    return residual * np.eye(tokens) + (1 - residual) * rows


def rolled(matrices: np.ndarray) -> np.ndarray:
    return np.stack([m.numpy() for m in rollout(torch.from_numpy(matrices))])


# --- rollout --------------------------------------------------------------------------------


def test_the_rollout_of_identities_is_the_identity() -> None:
    same = np.tile(np.eye(4), (3, 1, 1))
    np.testing.assert_array_equal(rolled(same), same)


def test_a_uniform_layer_makes_everything_uniform() -> None:
    matrices = some(3, 5)
    matrices[0] = 1 / 5
    np.testing.assert_allclose(rolled(matrices), 1 / 5, rtol=1e-12)


def test_two_layers_by_hand() -> None:
    """Token 1 takes half of token 0 in each layer: ½ of itself twice is ¼, the rest token 0's."""
    layer = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = rolled(np.stack([layer, layer]))
    np.testing.assert_array_equal(found[0], layer)
    np.testing.assert_array_equal(found[1], [[1.0, 0.0], [0.75, 0.25]])


def test_the_first_layer_acts_first() -> None:
    first, second = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(rolled(np.stack([first, second]))[1], [[0.0, 1.0], [0.0, 1.0]])


def test_rows_of_the_rollout_sum_to_one() -> None:
    np.testing.assert_allclose(rolled(some(12, 40)).sum(-1), 1, rtol=1e-12)


# --- maximum flow ---------------------------------------------------------------------------


def by_networkx(matrices: np.ndarray, query: int, key: int) -> float:
    """Nodes (layer, token); layer 0 is the input."""
    graph = networkx.DiGraph()
    for layer, matrix in enumerate(matrices):
        for (i, j), weight in np.ndenumerate(matrix):
            graph.add_edge((layer + 1, i), (layer, j), capacity=weight)
    return networkx.maximum_flow_value(graph, (len(matrices), query), (0, key))


def test_through_one_layer_the_flow_is_the_weight() -> None:
    matrices = some(1, 6)
    np.testing.assert_allclose(max_flow(matrices), matrices[0], rtol=0, atol=1 / UNITS)


def test_two_layers_by_hand_flow_through_their_narrowest_cut() -> None:
    """From 1 to 0: ½ straight down and then 1 wide, and ½ by way of 1, then ½: both fit, so 1.
    From 1 to 1: ½ by way of 1, and nothing by way of 0, so ½; products would give ¼."""
    layer = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = max_flow(np.stack([layer, layer]))
    np.testing.assert_allclose(found, [[1.0, 0.0], [1.0, 0.5]], rtol=0, atol=4 / UNITS)


def test_a_pipe_is_no_wider_than_its_narrowest_place() -> None:
    wide, narrow = np.ones((1, 1)), np.full((1, 1), 0.125)
    found = max_flow(np.stack([wide, narrow, wide]))
    np.testing.assert_allclose(found, [[0.125]], rtol=0, atol=1 / UNITS)


@pytest.mark.parametrize(("layers", "tokens"), [(2, 3), (3, 5), (6, 4)])
def test_flows_are_those_of_another_solver(layers: int, tokens: int) -> None:
    matrices = some(layers, tokens, seed=layers)
    found = max_flow(matrices)
    for query in range(tokens):
        for key in range(tokens):
            assert found[query, key] == pytest.approx(by_networkx(matrices, query, key), abs=1e-7)


def test_no_flow_exceeds_a_cut_nor_undercuts_a_path() -> None:
    """What leaves the query, what enters the key and every layer between are cuts; the product
    along any path, and so rollout's largest, is a flow."""
    matrices = some(4, 6, seed=3)
    found = max_flow(matrices)
    entering = matrices[0].sum(0)  # [key]
    assert (found <= np.minimum(1, entering)[None] + 1e-8).all()
    best = matrices[0]
    for matrix in matrices[1:]:
        best = np.minimum(matrix[:, :, None], best[None]).max(1)  # [query, key] widest path
    assert (found >= best - 1e-8).all()


def test_what_cannot_be_reached_gets_no_flow() -> None:
    causal = np.tril(some(3, 5))
    assert not np.triu(max_flow(causal), 1).any()


def test_too_many_tokens_are_refused() -> None:
    with pytest.raises(InputError, match=f"found 65 tokens; wanted at most {MOST_TOKENS}"):
        max_flow(np.zeros((1, 65, 65)))
