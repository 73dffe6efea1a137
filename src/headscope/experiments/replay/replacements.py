"""What stands in for the attention of heads: rows over the keys, made of the input alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import PreTrainedModel

from headscope.analyses.explained.prediction import TINY, HeadRules, RuleMaps
from headscope.analyses.explained.rules import RESTS
from headscope.claims.attention_rule import AttentionRule, RuleInput, rows_of
from headscope.core.accumulators import Float64, Ints
from headscope.corpus.document import Example
from headscope.experiments.replay.rule_file import OwnRules
from headscope.experiments.replay.settings import EVEN, MEAN_MAP
from headscope.model.attention import AttentionCall, visible
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.model import Model
from headscope.model.rule_inputs import rule_input
from headscope.model.variants import Head, even

KEPT = 2**27  # ours: weights of the maps of a batch that are made once for all sets of heads
# -> [example, head, query, key] of these heads
Rows = Callable[[AttentionCall, list[int]], torch.Tensor]


class Replacing:
    """An intervention: some heads attend by other rows; values stay.

    heads  layer -> heads, both from 0; whose attention is replaced now
    rows   by what
    """

    def __init__(self) -> None:
        self.heads: Mapping[int, list[int]] = {}
        self.rows: Rows | None = None

    def use(self, heads: frozenset[Head], rows: Rows | None) -> None:
        """Replace the attention of these heads from now on."""
        by_layer: dict[int, list[int]] = {}
        for layer, head in sorted(heads):
            by_layer.setdefault(layer, []).append(head)
        self.heads, self.rows = by_layer, rows

    def __call__(self, call: AttentionCall) -> None:
        """Replace what is to be replaced in one layer."""
        heads = self.heads.get(call.layer)
        if not heads or self.rows is None:
            return
        attention = call.attention.clone()
        attention[:, heads] = self.rows(call, heads).to(attention)
        call.attention = attention


@contextmanager
def replacing(network: PreTrainedModel, *, gradients: bool = False) -> Iterator[Replacing]:
    """Inside the context the attention of heads can be replaced.

    gradients  whether they can be taken, of the rows that stand in
    raises     ModelError for a family outside transformers' registry
    """
    change, mode = Replacing(), torch.enable_grad if gradients else torch.inference_mode
    with mode(), Instrument(network, interventions=[change]):
        yield change


@dataclass(frozen=True)
class StandIns:
    """What stands in for heads, chosen on other inputs.

    rules     all that any head may have
    heads     which of them each head has, [layer, head], by replacement
    profile   [layer, head, key − query + n − 1] mean attention by relative position
    frequent  token ids that rules call frequent
    """

    model: Model
    rules: Sequence[AttentionRule]
    heads: Mapping[str, HeadRules]
    profile: Float64
    frequent: Sequence[int]

    def of(self, batch: Batch) -> BatchStandIns:
        """Those of the inputs of a batch."""
        return BatchStandIns(self, batch)

    def read(self, example: Example) -> RuleInput:
        """An input as rules see it."""
        return rule_input(example, self.model, frequent=self.frequent)


@dataclass(frozen=True)
class RowsOfInput:
    """The rows of rules in one input, made when they are used: those of a long one are large.

    made  number of a rule -> its rows [query, key]
    """

    rules: Sequence[AttentionRule]
    read: RuleInput
    made: dict[int, torch.Tensor] = field(default_factory=dict)

    def maps(self, used: Ints) -> RuleMaps:
        """The rows of these rules [rule]; InputError for a bad one."""
        names = [rule.name for rule in self.rules]
        rests = [names.index(name) for name in RESTS]
        lacking = [at for at in {*used.tolist(), *rests} if at not in self.made]
        if lacking:
            rows = rows_of([self.rules[at] for at in lacking], self.read)
            self.made.update(zip(lacking, torch.from_numpy(rows), strict=True))
        every, of_rests = (self._rows(some) for some in (used.tolist(), rests))
        return RuleMaps.of_rows(every, of_rests, self.read)

    def _rows(self, some: Sequence[int]) -> torch.Tensor:
        size = len(self.read)
        return torch.stack([self.made[at] for at in some]) if some else torch.zeros(0, size, size)


@dataclass
class BatchStandIns:
    """The same for one batch of inputs."""

    made: StandIns
    batch: Batch
    kept: dict[tuple[str, int], torch.Tensor] = field(default_factory=dict)
    inputs: list[RowsOfInput] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape, (count, tokens) = self.made.model.shape, self.batch.input_ids.shape
        self.keeps = shape.layers * shape.heads * count * tokens**2 <= KEPT

    def rows(self, name: str) -> Rows:
        """The rows of one replacement, of heads of the layer that calls."""

        def made(call: AttentionCall, heads: list[int]) -> torch.Tensor:
            seen = visible(call.mask, call.attention)
            if not self.keeps:
                return self._made(name, call.layer, seen, heads)
            return self.of_layer(name, call.layer, seen)[:, heads]

        return made

    def of_layer(self, name: str, layer: int, seen: torch.Tensor) -> torch.Tensor:
        """[example, head, query, key] rows of one replacement in one layer.

        Keys that the layer hides get nothing, and the rest is scaled to sum to 1. Only what stands
        in for the first token is taken from that one, also where it is hidden.

        seen  [example or 1, 1, query, key] whether a query may attend to a key
        """
        if any(kept != name for kept, _ in self.kept):
            self.kept.clear()
        if (name, layer) not in self.kept:
            made = self._made(name, layer, seen, range(self.made.model.shape.heads))
            if not self.keeps:
                return made
            self.kept[name, layer] = made
        return self.kept[name, layer]

    def _made(
        self, name: str, layer: int, seen: torch.Tensor, heads: Sequence[int]
    ) -> torch.Tensor:
        same = even(seen, torch.float32)
        examples = range(len(self.batch.examples))
        if name == EVEN:
            return same.expand(len(examples), len(heads), -1, -1)
        every = [self._of(name, layer, at, seen, heads) for at in examples]
        rows = self._padded(every).to(seen.device)
        if name == MEAN_MAP:  # rules know what is seen, and what stands in for a hidden token
            rows = rows * seen
        total = rows.sum(-1, keepdim=True)
        return torch.where(total > 0, rows / total.clamp_min(TINY), same)

    def _of(
        self, name: str, layer: int, at: int, seen: torch.Tensor, heads: Sequence[int]
    ) -> torch.Tensor:
        """[head, query, key] of one input."""
        made, example = self.made, self.batch.examples[at]
        size = len(example)
        if name == MEAN_MAP:
            profile = made.profile[layer][list(heads)]
            return torch.from_numpy(by_position(profile, size)).float()
        if not self.inputs:
            self.inputs = [RowsOfInput(made.rules, made.read(e)) for e in self.batch.examples]
        own = made.heads[name].of_layer_heads(layer, heads)
        used = np.unique(own.rule[own.rule >= 0])
        here = seen[at if len(seen) > 1 else 0, 0, :size, :size].cpu()
        maps = self.inputs[at].maps(used).within(here)
        return own.numbered(used).attention(maps, example.input_ids)

    def _padded(self, rows: list[torch.Tensor]) -> torch.Tensor:
        tokens = self.batch.input_ids.shape[1]
        out = torch.zeros((len(rows), rows[0].shape[0], tokens, tokens))
        for at, own in enumerate(rows):
            size = own.shape[-1]
            out[at, :, :size, :size] = own
        return out


def of_another_head(rules: HeadRules) -> HeadRules:
    """For each head the rules of the next one of its layer; of a single one, of the next layer."""
    axis = int(rules.rest.shape[1] > 1)
    return HeadRules(*(np.roll(numbers, -1, axis) for numbers in vars(rules).values()))


def with_own(rules: HeadRules, own: Mapping[Head, OwnRules], names: Sequence[str]) -> HeadRules:
    """The rules of all heads, with the user's in place of ours where there are some.

    names  of all rules
    """
    slots = max([rules.rule.shape[-1], *(len(one.rules) for one in own.values())])
    more = ((0, 0), (0, 0), (0, slots - rules.rule.shape[-1]))
    rule = np.pad(rules.rule, more, constant_values=-1)
    weight, rest = np.pad(rules.weight, more), rules.rest.copy()
    token, factor = rules.key_token.copy(), rules.key_factor.copy()
    for place, one in own.items():
        rule[place], weight[place] = -1, 0
        rule[place][: len(one.rules)] = [names.index(name) for name in one.names]
        weight[place][: len(one.rules)] = one.weights
        rest[place] = RESTS.index(one.rest) if one.rest else 0
        token[place], factor[place] = -1, 1
    return HeadRules(rule, weight, rest, token, factor)


def by_position(profile: Float64, tokens: int) -> Float64:
    """[head, query, key] rows by relative position alone, not yet scaled.

    profile  [head, key − query + n − 1]; beyond its ends there is nothing
    """
    n = (profile.shape[-1] + 1) // 2
    place = np.arange(tokens)
    lag = place[None] - place[:, None]  # [query, key]
    known = np.abs(lag) < n
    return np.where(known, profile[:, np.where(known, lag + n - 1, 0)], 0.0)
