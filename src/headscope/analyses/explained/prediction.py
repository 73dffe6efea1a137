"""What the rules of the heads predict of their attention in one input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from headscope.analyses.explained.rules import RESTS, STAND_IN
from headscope.claims.attention_rule import AttentionRule, RuleInput, rows_of
from headscope.core.accumulators import Float64, Ints, ratio

TINY = 1e-30


@dataclass(frozen=True)
class RuleMaps:
    """The rows of rules in one input.

    rows     [rule, query, key] float32
    applies  [rule, query] 1 where the rule applies to the query, else 0
    rests    [rest, query, key]; every row sums to 1
    queries  [query] their places in the input
    visible  [query, key] the keys that rules may name: all, or those before the query
    """

    rows: torch.Tensor
    applies: torch.Tensor
    rests: torch.Tensor
    queries: Ints
    visible: torch.Tensor

    @classmethod
    def of(
        cls, rules: Sequence[AttentionRule], read: RuleInput, queries: Ints | None = None
    ) -> RuleMaps:
        """The rows of these rules, RESTS among them, in this input; InputError for a bad row.

        queries  those that are kept; None: all
        """
        names = [rule.name for rule in rules]
        rows = torch.from_numpy(rows_of(rules, read, queries))
        return cls.of_rows(rows, rows[[names.index(name) for name in RESTS]], read, queries)

    @classmethod
    def of_rows(
        cls,
        rows: torch.Tensor,
        rests: torch.Tensor,
        read: RuleInput,
        queries: Ints | None = None,
    ) -> RuleMaps:
        """Those of `rows_of`; where a rest is not seen, the first token is in its place.

        rests  [rest, query, key] the rows of RESTS
        """
        places = np.arange(len(read)) if queries is None else queries
        lost = rests.sum(-1) < 0.5
        rests[lost] = 0.0
        rests[..., 0] += lost
        visible = torch.from_numpy(read.visible[places])
        return cls(rows, (rows.sum(-1) > 0.5).float(), rests, places, visible)

    def within(self, seen: torch.Tensor) -> RuleMaps:
        """The same in a layer that hides more keys, as one with a window does.

        A rule applies to the queries that see some of its keys. A rest that is not seen is even;
        what stands in for the first token is written as that one, also where it is hidden.

        seen  [query, key] whether a query may attend to a key
        """
        if bool((seen | ~self.visible).all()):
            return self
        rows, total = _seen(self.rows, seen)
        rests, left = _seen(self.rests, seen)
        even = seen / seen.sum(-1, keepdim=True).clamp_min(1)
        rests = torch.where(left > 0, rests, even)
        stands = RESTS.index(STAND_IN)
        rests[stands] = self.rests[stands]
        return replace(self, rows=rows, applies=(total[..., 0] > 0).float(), rests=rests)


def _seen(rows: torch.Tensor, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows on the keys that are seen, of sum 1 or 0, and how much of them was there."""
    there = rows * seen
    total = there.sum(-1, keepdim=True)
    return there / total.clamp_min(TINY), total


@dataclass(frozen=True)
class HeadRules:
    """The rules of every head of a layer, or of [layer, head].

    rule        […, head, slot] numbers of its rules; -1 behind the last
    weight      […, head, slot] their weights; 0 behind the last
    rest        […, head] number of its rest, of RESTS
    key_token   […, head, key token] ids of tokens that get more, or less; -1 behind the last
    key_factor  […, head, key token] by which factor

    Weights and factors may be tensors: then gradients can be taken of what is predicted.
    """

    rule: Ints
    weight: Float64
    rest: Ints
    key_token: Ints
    key_factor: Float64

    def layer(self, index: int) -> HeadRules:
        """Those of one layer."""
        return HeadRules(*(getattr(self, name)[index] for name in vars(self)))

    def overlap(self, together: Mapping[int, Float64]) -> Float64:
        """[layer, head, slot, slot] of the rarer of two rules' queries, how many have both
        triggers; NaN in layers that are not known.

        together  layer -> [rule, rule] number of queries with both
        """
        shares = np.full((*self.rule.shape, self.rule.shape[-1]), np.nan)
        for layer, both in together.items():
            one, other = self.rule[layer][..., :, None], self.rule[layer][..., None, :]
            own = np.diagonal(both)
            share = ratio(both[one, other], np.minimum(own[one], own[other]))
            shares[layer] = np.where((one < 0) | (other < 0), np.nan, share)
        return shares

    def of_heads(self, heads: slice) -> HeadRules:
        """Those of some heads of every layer."""
        return HeadRules(*(getattr(self, name)[:, heads] for name in vars(self)))

    def of_layer_heads(self, index: int, heads: Sequence[int]) -> HeadRules:
        """Those of some heads of one layer."""
        return HeadRules(*(getattr(self, name)[index][list(heads)] for name in vars(self)))

    def numbered(self, rules: Ints) -> HeadRules:
        """The same with numbers of rules among these few [rule], which are in order."""
        place = np.searchsorted(rules, self.rule)
        return replace(self, rule=np.where(self.rule < 0, -1, place))

    def filled(self, key_tokens: int) -> HeadRules:
        """The same with this number of places for key tokens."""
        lacking = [(0, 0)] * self.rest.ndim + [(0, key_tokens - self.key_token.shape[-1])]
        return replace(
            self,
            key_token=np.pad(self.key_token, lacking, constant_values=-1),
            key_factor=np.pad(self.key_factor, lacking, constant_values=1.0),
        )

    def parts(self, maps: RuleMaps) -> torch.Tensor:
        """[head, slot + 1, query, key] what each rule, and last the rest, gives; key tokens apart.

        Of one layer. Together they sum to 1 in every row.
        """
        rule = torch.from_numpy(np.maximum(self.rule, 0))
        weight = torch.from_numpy(np.where(self.rule < 0, 0, self.weight)).float()
        total = (weight[..., None] * maps.applies[rule]).sum(1)  # [head, query]
        scale = 1 / total.clamp_min(1)
        own = maps.rows[rule] * weight[..., None, None] * scale[:, None, :, None]
        left = (1 - total).clamp_min(0)[..., None]  # [head, query, 1]
        rest = maps.rests[torch.from_numpy(self.rest)] * left
        return torch.cat([own, rest[:, None]], 1)

    def attention(self, maps: RuleMaps, ids: Ints) -> torch.Tensor:
        """[head, query, key] the predicted attention of one layer; rows sum to 1."""
        rows = self.mixed(maps) * self.factors(ids)[:, None]
        return rows / rows.sum(-1, keepdim=True).clamp_min(TINY)

    def mixed(self, maps: RuleMaps) -> torch.Tensor:
        """[head, query, key] the same without key tokens."""
        heads, behind = len(self.rest), len(maps.rows)
        place = torch.from_numpy(np.where(self.rule < 0, behind, self.rule).astype(np.int64))
        weight = torch.as_tensor(self.weight).double()
        weights = weight.new_zeros(heads, behind + 1).scatter_add(1, place, weight)
        used = np.unique(self.rule[self.rule >= 0])  # few of all rules: of long inputs maps are big
        by_rule = weights[:, used].float()
        total = by_rule @ maps.applies[used]  # [head, query]
        rows = torch.tensordot(by_rule, maps.rows[used], 1) / total.clamp_min(1)[..., None]
        left = (1 - total).clamp_min(0)[..., None]
        rested: torch.Tensor = rows + maps.rests[torch.from_numpy(self.rest)] * left
        return rested

    def factors(self, ids: Ints) -> torch.Tensor:
        """[head, key] the factor of each token; 1 for those that are no key tokens."""
        factor = torch.as_tensor(self.key_factor).double()
        same = self.key_token[..., None] == ids  # [head, key token, key]
        behind = np.ones((len(same), 1, len(ids)), bool)  # the last: no key token, factor 1
        place = torch.from_numpy(np.concatenate([same, behind], 1).argmax(1))
        return torch.cat([factor, factor.new_ones(len(place), 1)], 1).gather(1, place).float()


def gathered(rows: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
    """[head, query, key] attention times norm, rows normalised to 1; rows of no norm are 0.

    norms  [head, key] ‖f(x_k)‖
    """
    weighted = rows * norms[:, None]
    return weighted / weighted.sum(-1, keepdim=True).clamp_min(TINY)
