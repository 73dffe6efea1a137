"""How much of a layer's output comes from each token of the input, over all paths through layers?

Two ways to put layer matrices together (Abnar & Zuidema 2020). Rollout adds up all paths from an
output to an input token, a path's weight being the product of its steps. Flow asks how much can run
through the layers at once when every step is a pipe as wide as its weight: the maximum flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from headscope.errors import InputError

Floats = npt.NDArray[np.float64]

# scipy's flows are whole numbers of 32 bits; rows sum to 1, so no flow is larger than this.
UNITS = 1 << 30
MOST_TOKENS = 64  # one maximum flow per pair of tokens: about 4 s for 64 tokens and 12 layers


def rollout(matrices: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """For each layer, from the first: the product of its matrix and those before.

    matrices  [example, query, key] layer by layer; rows sum to 1, and so do those of the products
    """
    product: torch.Tensor | None = None
    for matrix in matrices:
        product = matrix if product is None else matrix @ product
        yield product


def max_flow(matrices: Floats) -> Floats:
    """[query, key] the largest flow from each token of the last layer to each token of the input.

    matrices  [layer, query, key] capacities from 0 to 1; rows sum to at most 1
    returns   0 … 1. Capacities are rounded to 2⁻³⁰, so a flow is right to 2⁻³¹ times the number of
              steps in a narrowest cut: below 1e-5 for 64 tokens and 12 layers. Rows do not sum to 1
              (the authors' code divides them by their sum, the paper does not)
    raises    InputError for more than MOST_TOKENS tokens
    """
    layers, tokens = matrices.shape[:2]
    if tokens > MOST_TOKENS:
        raise InputError(
            f"found {tokens} tokens; wanted at most {MOST_TOKENS} for max_flow, which solves every "
            "pair of tokens by itself: take a shorter text, or rollout"
        )
    graph = _graph(matrices)
    flows = np.zeros((tokens, tokens))
    for query in range(tokens):
        for key in range(tokens):
            flows[query, key] = maximum_flow(graph, layers * tokens + query, key).flow_value / UNITS
    return flows


def _graph(matrices: Floats) -> csr_array:
    """Capacities between the nodes layer·tokens + token, 0 being the input, in UNITS."""
    layers, tokens = matrices.shape[:2]
    layer, query, key = np.nonzero(matrices > 0)
    capacity = np.rint(matrices[layer, query, key] * UNITS).astype(np.int32)
    nodes = (layers + 1) * tokens
    places = ((layer + 1) * tokens + query, layer * tokens + key)
    return csr_array((capacity, places), shape=(nodes, nodes), dtype=np.int32)
