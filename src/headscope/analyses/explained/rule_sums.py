"""Sums over queries from which the rules of every head are chosen."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import torch

from headscope.analyses.explained.fitting import Choice, Products, choose
from headscope.analyses.explained.prediction import RuleMaps
from headscope.analyses.explained.rules import RESTS
from headscope.core.accumulators import Bools, Float64
from headscope.model.batch import to_float64

GROUPS = 20  # ours: of documents, which tell the error of a gain


@dataclass
class RuleSums:
    """Sums of one part of the documents, by groups of these.

    rules, layers, heads  how many
    """

    rules: int
    layers: int
    heads: int
    groups: int = 1
    by_name: dict[str, Float64] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with empty sums."""
        rules, rests, heads = self.rules, len(RESTS), (self.layers, self.heads)
        shapes = {
            "rule_rule": (rules, rules),  # ⟨R_r, R_j⟩
            "rest_rule": (rests, rules),  # ⟨rest, R_r⟩
            "rule_rest": (rests, rules, rules),  # ⟨R_r, T_j rest⟩
            "rest_rest": (rests, rules, rules),  # ⟨T_r rest, T_j rest⟩
            "rest": (rests,),  # ⟨rest, rest⟩
            "attention_rule": (*heads, rules),  # ⟨A, R_r⟩
            "attention_rest": (*heads, rests, rules),  # ⟨A, T_r rest⟩
            "attention_all_rest": (*heads, rests),  # ⟨A, rest⟩
            "attention": heads,  # ⟨A, A⟩
        }
        self.by_name = {name: np.zeros((self.groups, *shape)) for name, shape in shapes.items()}

    def add_rules(self, maps: RuleMaps, group: int) -> None:
        """Add what does not depend on a network, of one input."""
        rows, applies, rests = (
            part.double().numpy() for part in (maps.rows, maps.applies, maps.rests)
        )
        flat = rows.reshape(self.rules, -1)
        of_rest = np.stack([(rows * rest).sum(-1) for rest in rests])  # [rest, rule, query]
        squares = (rests**2).sum(-1)  # [rest, query]
        self._add(group, "rule_rule", flat @ flat.T)
        self._add(group, "rest_rule", of_rest.sum(-1))
        self._add(group, "rule_rest", of_rest @ applies.T)
        self._add(group, "rest_rest", (applies * squares[:, None]) @ applies.T)
        self._add(group, "rest", squares.sum(-1))

    def add_attention(
        self, maps: RuleMaps, attention: torch.Tensor, layer: int, group: int
    ) -> None:
        """Add the products with the attention [head, query, key] of one layer in one input."""
        flat = attention.reshape(self.heads, -1)
        of_rest = torch.einsum("hqk,sqk->hsq", attention, maps.rests)
        products = {
            "attention_rule": flat @ maps.rows.reshape(self.rules, -1).T,
            "attention_rest": of_rest @ maps.applies.T,
            "attention_all_rest": of_rest.sum(-1),
            "attention": (flat**2).sum(-1),
        }
        for name, values in products.items():
            self.by_name[name][group, layer] += to_float64(values)

    def _add(self, group: int, name: str, values: Float64) -> None:
        self.by_name[name][group] += values

    def products(self, rest: int) -> tuple[Float64, Float64, Float64]:
        """`Products` with that rest of every group: rules, attention and all, of all heads."""
        s = self.by_name
        crossed = s["rule_rest"][:, rest]  # [group, rule, rule]
        rules = s["rule_rule"] - crossed - crossed.transpose(0, 2, 1) + s["rest_rest"][:, rest]
        own = np.diagonal(s["rest_rest"][:, rest], axis1=1, axis2=2)
        of_rest = (s["rest_rule"][:, rest] - own)[:, None, None]
        attention = s["attention_rule"] - s["attention_rest"][:, :, :, rest] - of_rest
        squares = s["rest"][:, rest][:, None, None]
        every = s["attention"] - 2 * s["attention_all_rest"][..., rest] + squares
        return rules, attention, every


def chosen(
    choosing: RuleSums, other: RuleSums, layers: Collection[int], allowed: Bools
) -> list[list[Choice]]:
    """[layer][head] the rules of every head, with the rest that leaves least; none in layers that
    are not among `layers`.
    """
    none = Choice((), np.zeros(0), -1, np.inf)
    best: dict[tuple[int, int], Choice] = {}
    for rest in range(len(RESTS)):
        rules, attention, every = (part.sum(0) for part in choosing.products(rest))
        others = other.products(rest)
        for layer, head in product(layers, range(choosing.heads)):
            one = choose(
                Products(rules, attention[layer, head], every[layer, head]),
                Products(others[0], others[1][:, layer, head], others[2][:, layer, head]),
                rest=rest,
                allowed=allowed,
            )
            if (layer, head) not in best or one.loss < best[layer, head].loss:
                best[layer, head] = one
    return [
        [best.get((layer, head), none) for head in range(choosing.heads)]
        for layer in range(choosing.layers)
    ]
