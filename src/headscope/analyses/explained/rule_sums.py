"""Sums over queries from which the rules of every head are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import torch

from headscope.analyses.explained.fitting import MOST_RULES, Choice, Products, choose
from headscope.analyses.explained.prediction import HeadRules, RuleMaps
from headscope.analyses.explained.rules import RESTS, STAND_IN
from headscope.core.accumulators import Bools, Float64
from headscope.model.batch import to_float64

GROUPS = 20  # ours: of documents, which tell the error of a gain


@dataclass
class RuleSums:
    """Sums of one part of the documents, by groups of these.

    rules, layers, heads  how many
    by_name    sums with the attention of the heads
    of_layers  sums of the rules alone, of inputs in which these layers see the same keys
    """

    rules: int
    layers: int
    heads: int
    groups: int = 1
    by_name: dict[str, Float64] = field(default_factory=dict)
    of_layers: dict[tuple[int, ...], dict[str, Float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with empty sums."""
        rules, rests, heads = self.rules, len(RESTS), (self.layers, self.heads)
        self.by_name = self._empty(
            {
                "attention_rule": (*heads, rules),  # ⟨A, R_r⟩
                "attention_rest": (*heads, rests, rules),  # ⟨A, T_r rest⟩
                "attention_all_rest": (*heads, rests),  # ⟨A, rest⟩
                "attention": heads,  # ⟨A, A⟩
            }
        )

    def _empty(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Float64]:
        return {name: np.zeros((self.groups, *shape)) for name, shape in shapes.items()}

    def _sums_of(self, layers: tuple[int, ...]) -> dict[str, Float64]:
        rules, rests = self.rules, len(RESTS)
        if layers not in self.of_layers:
            self.of_layers[layers] = self._empty(
                {
                    "rule_rule": (rules, rules),  # ⟨R_r, R_j⟩
                    "rest_rule": (rests, rules),  # ⟨rest, R_r⟩
                    "rule_rest": (rests, rules, rules),  # ⟨R_r, T_j rest⟩
                    "rest_rest": (rests, rules, rules),  # ⟨T_r rest, T_j rest⟩
                    "rest": (rests,),  # ⟨rest, rest⟩
                }
            )
        return self.of_layers[layers]

    def add_rules(self, maps: RuleMaps, group: int, layers: tuple[int, ...]) -> None:
        """Add what does not depend on a network, of one input, in layers that see the same keys."""
        rows, applies, rests = (
            part.double().numpy() for part in (maps.rows, maps.applies, maps.rests)
        )
        flat = rows.reshape(self.rules, -1)
        of_rest = np.stack([(rows * rest).sum(-1) for rest in rests])  # [rest, rule, query]
        squares = (rests**2).sum(-1)  # [rest, query]
        products = {
            "rule_rule": flat @ flat.T,
            "rest_rule": of_rest.sum(-1),
            "rule_rest": of_rest @ applies.T,
            "rest_rest": (applies * squares[:, None]) @ applies.T,
            "rest": squares.sum(-1),
        }
        for name, values in products.items():
            self._sums_of(layers)[name][group] += values

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

    def of_rules(self, name: str, layer: int) -> Float64:
        """[group, …] sums of the rules alone, as that layer sees the keys."""
        return np.asarray(sum(own[name] for of, own in self.of_layers.items() if layer in of))

    def hides_first(self, layer: int) -> bool:
        """Whether some query does not see the first token in this layer: that rest is even then."""
        squares = self.of_rules("rest", layer)  # sums of ones, where all see it
        first, stands = (squares[..., RESTS.index(name)] for name in ("the first token", STAND_IN))
        return not np.array_equal(first, stands)

    def of_all_layers(self, name: str) -> Float64:
        """Sums of the rules alone, of all groups, over all layers."""
        every = self.of_layers.items()
        return np.asarray(sum(len(layers) * own[name].sum(0) for layers, own in every))

    def seeing(self, layer: int) -> tuple[tuple[int, ...], ...]:
        """What tells layers apart that see other keys."""
        return tuple(of for of in self.of_layers if layer in of)

    def products(self, rest: int, layers: Sequence[int]) -> tuple[Float64, Float64, Float64]:
        """`Products` with that rest of every group: rules, attention and all, of all heads.

        layers  which see the same keys
        """
        names = ("rule_rule", "rest_rule", "rule_rest", "rest_rest", "rest")
        alone = {name: self.of_rules(name, layers[0]) for name in names}
        own = {name: sums[:, list(layers)] for name, sums in self.by_name.items()}
        crossed, both = alone["rule_rest"][:, rest], alone["rest_rest"][:, rest]
        rules = alone["rule_rule"] - crossed - crossed.transpose(0, 2, 1) + both
        squares = np.diagonal(both, axis1=1, axis2=2)
        of_rest = (alone["rest_rule"][:, rest] - squares)[:, None, None]
        attention = own["attention_rule"] - own["attention_rest"][:, :, :, rest] - of_rest
        of_all = alone["rest"][:, rest][:, None, None]
        every = own["attention"] - 2 * own["attention_all_rest"][..., rest] + of_all
        return rules, attention, every


def chosen(
    choosing: RuleSums, other: RuleSums, layers: Sequence[int], *, allowed: Mapping[str, Bools]
) -> dict[str, HeadRules]:
    """The rules of every head of these layers, with the rest that leaves least; of others none.

    choosing, other  sums of documents that choose, and of others that say when to stop
    allowed          by name, [rule] which may be chosen
    returns          by name, the rules chosen among these
    """
    alike: dict[object, list[int]] = {}
    for layer in layers:
        alike.setdefault((choosing.seeing(layer), other.seeing(layer)), []).append(layer)
    best: dict[str, dict[tuple[int, int], Choice]] = {name: {} for name in allowed}
    for same, rest in product(alike.values(), range(len(RESTS))):
        if RESTS[rest] == STAND_IN and not choosing.hides_first(same[0]):
            continue
        rules, attention, every = (part.sum(0) for part in choosing.products(rest, same))
        others = other.products(rest, same)
        for (at, layer), head in product(enumerate(same), range(choosing.heads)):
            chosen_on = Products(rules, attention[at, head], every[at, head])
            stopping = Products(others[0], others[1][:, at, head], others[2][:, at, head])
            for name, may in allowed.items():
                one, held = choose(chosen_on, stopping, rest=rest, allowed=may), best[name]
                if (layer, head) not in held or one.loss < held[layer, head].loss:
                    held[layer, head] = one
    return {name: _as_arrays(held, choosing) for name, held in best.items()}


def _as_arrays(best: Mapping[tuple[int, int], Choice], of: RuleSums) -> HeadRules:
    made = no_rules(of.layers, of.heads)
    for place, one in best.items():
        made.rule[place][: len(one.rules)] = one.rules
        made.weight[place][: len(one.rules)] = one.weights
        made.rest[place] = one.rest
    return made


def no_rules(layers: int, heads: int) -> HeadRules:
    """Heads without rules, rest and key tokens."""
    cell = (layers, heads)
    return HeadRules(
        np.full((*cell, MOST_RULES), -1),
        np.zeros((*cell, MOST_RULES)),
        np.full(cell, -1),
        np.zeros((*cell, 0), np.int64),
        np.zeros((*cell, 0)),
    )
