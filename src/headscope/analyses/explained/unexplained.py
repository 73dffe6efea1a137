"""What the rules do not explain: the largest weights outside of the prediction, and on which
tokens they lie.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headscope.analyses.explained.token_mass import TokenMass
from headscope.claims.terms import OURS
from headscope.core.accumulators import Ints, ratio
from headscope.core.results import Variable
from headscope.corpus.document import Example
from headscope.model.batch import to_float64

SHOWN = 3  # rows of a head, of as many inputs


class Unexplained:
    """The rows of every head that depart most from its rules, each of another input."""

    def __init__(self, layers: int, heads: int, examples: Sequence[Example]) -> None:
        cell = (layers, heads, SHOWN)
        self.weight = np.zeros(cell)
        self.predicted = np.full(cell, np.nan)
        self.tokens = np.full((*cell, 2), -1)  # query, key
        self.places = np.full((*cell, 3), -1)  # input, query, key
        self.mass = TokenMass(layers, heads, examples)
        self.total = np.zeros((layers, heads))
        self.inputs: list[Example] = []

    def add(
        self,
        layer: int,
        own: torch.Tensor,
        predicted: torch.Tensor,
        example: Example,
        queries: Ints,
    ) -> None:
        """Add one input; own and predicted [head, query, key] are shares of what is gathered.

        queries  [query] their places in the input
        """
        if layer == 0:
            self.inputs.append(example)
        outside = (own - predicted).clamp_min(0)
        self.mass.add(layer, example.input_ids, outside.sum(1))
        self.total[layer] += to_float64(outside.sum((1, 2)))
        size = outside.shape[-1]
        most, place = outside.flatten(1).max(1)  # [head]
        for head in np.flatnonzero(most.numpy() > self.weight[layer, :, -1]).tolist():
            query, key = divmod(int(place[head]), size)
            weight, by_rules = float(most[head]), float(predicted[head, query, key])
            self._put(layer, head, weight, by_rules, int(queries[query]), key)

    def _put(  # noqa: PLR0917
        self, layer: int, head: int, weight: float, predicted: float, query: int, key: int
    ) -> None:
        at, ids = (layer, head), self.inputs[-1].input_ids
        self.weight[(*at, -1)] = weight
        self.predicted[(*at, -1)] = predicted
        self.tokens[(*at, -1)] = ids[query], ids[key]
        self.places[(*at, -1)] = len(self.inputs) - 1, query, key
        order = np.argsort(-self.weight[at], kind="stable")
        for array in (self.weight, self.predicted, self.tokens, self.places):
            array[at] = array[at][order]

    def variables(self) -> dict[str, Variable]:
        """The weights, the tokens, and the token that the most of what is not explained lies on."""
        cell = ("layer", "head")
        there = self.weight > 0
        weight = np.where(there, self.weight, np.nan)
        most = self.mass.mass.argmax(-1) if len(self.mass.ids) else np.zeros(self.total.shape, int)
        share = np.full(self.total.shape, np.nan)
        token = np.full(self.total.shape, -1)
        if len(self.mass.ids):
            share = ratio(
                np.take_along_axis(self.mass.mass, most[..., None], -1)[..., 0], self.total
            )
            token = np.where(self.total > 0, self.mass.ids[most], -1)
        words = {
            "unexplained": (
                weight,
                (*cell, "shown"),
                "largest share of a query beyond what is predicted",
            ),
            "unexplained_predicted": (self.predicted, (*cell, "shown"), "what was predicted of it"),
            "unexplained_query_token_id": (self.tokens[..., 0], (*cell, "shown"), "its query"),
            "unexplained_key_token_id": (self.tokens[..., 1], (*cell, "shown"), "its key"),
            "outside_share": (
                share,
                cell,
                "share of what is not explained that lies on one token",
            ),
            "outside_token_id": (token, cell, "that token"),
        }
        return {
            name: Variable(value, dims, said, "1", OURS, tidy=False)
            for name, (value, dims, said) in words.items()
        }
