"""Queries of every rule, drawn evenly over how much the head uses it: low use says where it fails.

The use of a rule at a query that it applies to is what the head puts on the rule's keys. Every
query has a lot, a random number that knows the input and its place alone. The DRAWN queries of the
smallest lots are kept, whatever the order of the inputs or how they are divided; they are ranked by
use and cut into tenths, and of each tenth the one of the smallest lot is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headscope.analyses.explained.prediction import HeadRules, RuleMaps
from headscope.claims.terms import OURS
from headscope.core.accumulators import Array, Float64, generator
from headscope.core.results import Variable
from headscope.corpus.document import Example

DRAWN = 100  # ours: queries of each rule of a head
TENTHS = 10
KEYS = 3  # ours: tokens that are named of what a query gets

QUERY = np.dtype(
    [
        ("lot", "f8"),  # infinite: no query
        ("use", "f8"),
        ("query", "i8"),  # number of the token among those of all inputs
        ("key", "i8", KEYS),  # likewise: what it gives most to
        ("weight", "f8", KEYS),
        ("own", "i8", KEYS),  # 1 for a key of the rule
    ]
)


def smallest(one: Array, other: Array) -> Array:
    """The DRAWN queries of both that have the smallest lots; all [head, slot, query] of QUERY."""
    both = np.concatenate([one, other], 2)
    order = np.argsort(both["lot"], axis=2, kind="stable")[:, :, :DRAWN]
    return np.take_along_axis(both, order, 2)


def of_tenths(use: Float64, lot: Float64) -> list[tuple[int, int]]:
    """(tenth, number of the query) for each tenth of the queries, from the least used.

    use, lot  [query]; a query that is none has an infinite lot
    """
    there = np.flatnonzero(np.isfinite(lot))
    ranked = there[np.lexsort((lot[there], use[there]))]
    tenth = np.arange(len(ranked)) * TENTHS // max(len(ranked), 1)
    return [
        (at, int(some[lot[some].argmin()]))
        for at in range(TENTHS)
        if len(some := ranked[tenth == at])
    ]


class DrawnQueries:
    """The drawn queries of every rule of every head.

    examples  the inputs, in the order in which their tokens are numbered
    """

    def __init__(
        self, layers: int, heads: int, slots: int, examples: Sequence[Example], *, seed: int
    ) -> None:
        self.cell, self.seed, self.examples = (layers, heads, slots), seed, examples
        sizes = [len(example) for example in examples]
        starts = np.cumsum([0, *sizes])[:-1].tolist()
        self.start = {(e.document, e.id): at for e, at in zip(examples, starts, strict=True)}
        self.layers: list[Array] = [np.zeros((heads, slots, 0), QUERY) for _ in range(layers)]

    def add(
        self, layer: int, rules: HeadRules, rows: torch.Tensor, maps: RuleMaps, example: Example
    ) -> None:
        """Add one input.

        rules  of the layer
        rows   [head, query, key] attention, or what is gathered
        """
        kept, rule = self.layers[layer], np.maximum(rules.rule, 0)  # [head, slot]
        every = generator(self.seed, "queries", example.document, example.id).random(len(example))
        lots = every[maps.queries]
        full = kept["lot"].shape[2] == DRAWN
        worst = kept["lot"][:, :, -1:] if full else np.full((*rule.shape, 1), np.inf)
        applies = maps.applies.numpy()[rule] * (rules.rule >= 0)[..., None]
        wanted = (applies > 0) & (lots < worst)  # [head, slot, query]
        few = np.flatnonzero(wanted.any((0, 1)))
        if not len(few):
            return
        own = rows[:, few]  # [head, query, key]
        keys = (maps.rows[:, few] > 0)[torch.from_numpy(rule)]  # [head, slot, query, key]
        use = torch.einsum("hqk,hsqk->hsq", own, keys.to(own))
        weight, key = own.topk(min(KEYS, len(example)), -1)  # [head, query, key shown]
        of_rule = keys.gather(-1, key[:, None].expand(-1, rule.shape[1], -1, -1))
        start, shown = self.start[example.document, example.id], slice(key.shape[-1])
        made = np.zeros(use.shape, QUERY)
        made["lot"] = np.where(wanted[..., few], lots[few], np.inf)
        made["use"], made["query"] = use.numpy(), start + maps.queries[few]
        made["key"][..., shown] = start + key.numpy()[:, None]
        made["weight"][..., shown] = weight.numpy()[:, None]
        made["own"][..., shown] = of_rule.numpy()
        self.layers[layer] = smallest(kept, made)

    def variables(self) -> dict[str, Variable]:
        """What is shown of each tenth, and the tokens of the inputs that it is numbered by."""
        cell = (*self.cell, TENTHS)
        use = np.full(cell, np.nan)
        query = np.full(cell, -1)
        key, own = (np.full((*cell, KEYS), none) for none in (-1, 0))
        weight = np.full((*cell, KEYS), np.nan)
        shown = {"use": use, "query": query, "key": key, "weight": weight, "own": own}
        for layer, head, slot in np.ndindex(*self.cell):
            one = self.layers[layer][head, slot]
            for tenth, at in of_tenths(one["use"], one["lot"]):
                for name, out in shown.items():
                    out[layer, head, slot, tenth] = one[name][at]
        there = list(self.examples)
        ids = np.concatenate([one.input_ids for one in there]) if there else np.zeros(0, int)
        special = np.concatenate([one.special for one in there]) if there else np.zeros(0, int)
        number = np.repeat(np.arange(len(there)), [len(one) for one in there])
        dims = ("layer", "head", "rule_place", "tenth")
        words = {
            "context_use": (use, dims, "what the query gives to the keys of the rule"),
            "context_query": (query, dims, "the query, a scored token; -1: none"),
            "context_key": (key, (*dims, "largest"), "what it gives most to, a scored token"),
            "context_weight": (weight, (*dims, "largest"), "how much of it"),
            "context_own": (own, (*dims, "largest"), "1: a key of the rule"),
            "scored_token_id": (ids, ("scored_token",), "tokens of the inputs that are explained"),
            "scored_input": (number, ("scored_token",), "number of the input"),
            "scored_special": (special.astype(int), ("scored_token",), "1: no token of the text"),
        }
        return {
            name: Variable(value, dims, said, "1", OURS, tidy=False)
            for name, (value, dims, said) in words.items()
        }
