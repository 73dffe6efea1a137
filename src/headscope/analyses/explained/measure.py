"""How much of what each head attends to, and gathers, do readable rules explain?

A sample of the inputs is read once. On part of its documents each head's rules are chosen, others
say when to stop, and the rest, which chose nothing, says how much of the attention they explain: of
each query Σ_k min(A, P), one less the total variation between attention and prediction. The same of
what is gathered, α‖f(x)‖ with rows of sum 1 (Kobayashi et al. 2020), where rest on a sink counts
for little.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.fitting import MOST_RULES, Choice
from headscope.analyses.explained.prediction import RESTS, TINY, HeadRules, RuleMaps, gathered
from headscope.analyses.explained.rule_sums import GROUPS, RuleSums, chosen
from headscope.analyses.explained.rules import rules_of_run
from headscope.analyses.explained.token_mass import KEY_TOKENS, TokenMass, with_key_tokens
from headscope.analyses.explained.unexplained import Unexplained
from headscope.claims.attention_rule import POSITION, REST
from headscope.claims.terms import OURS
from headscope.core.accumulators import Ints, Sums, generator
from headscope.core.intervals import DIFFERENCE, SHARE
from headscope.core.results import Variable, labelled
from headscope.corpus.document import Example
from headscope.corpus.equal_documents import unit_names
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.model.model import Model
from headscope.model.rule_inputs import rule_input
from headscope.run.analysis import SampledAnalysis, Scope

FREQUENT = 64  # ours: the most frequent tokens of the inputs that choose
CHOOSE, STOP, SCORE = range(3)
DEALT = (CHOOSE, SCORE, STOP, CHOOSE, SCORE)  # documents in turn
FEWEST = 6  # documents; of fewer, inputs are dealt
# What predicts: all rules, those of position and rest, the rest alone, the rules of another head.
BY = ("rules", "position_and_rest", "rest", "another_head")


class Explained(SampledAnalysis, question=QUESTION):
    """The rules of every head, and how much they explain of inputs that did not choose them."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.rules = rules_of_run(scope)
        cell = self.cell = (scope.layers, scope.heads)
        self.attention, self.gathering = (self.sums(*cell, len(BY)) for _ in range(2))
        self.iou, self.valued, self.beyond = (self.sums(*cell) for _ in range(3))
        self.by_rule = self.sums(*cell, MOST_RULES + 1)
        self.queries, self.everywhere = self.sums(), self.sums(4)
        self.heads: dict[str, HeadRules] = {}
        self.frequent: tuple[int, ...] = ()
        self.counts = dict.fromkeys(("chosen_on", "scored_on"), 0)

    def passes(self, model: Model, examples: Sequence[Example]) -> Iterator[Sequence[Example]]:
        """The inputs that choose, then those that score."""
        names, causal = model.tokenizer.convert_ids_to_tokens, model.shape.stack == "decoder"
        part, units = divided(examples, seed=self.scope.seed)
        of = [[one for one, at in zip(examples, part, strict=True) if at == p] for p in range(3)]
        self.unexplained = Unexplained(*self.cell, of[SCORE])
        self._scoring = False
        if not all(of):
            return
        self.frequent = frequent_ids(of[CHOOSE])

        def maps_of(example: Example) -> RuleMaps:
            read = rule_input(
                example, model.vocabulary, names, causal=causal, frequent=self.frequent
            )
            return RuleMaps.of(self.rules, read)

        self._maps_of = maps_of
        choosing = [*of[CHOOSE], *of[STOP]]
        places = {unit: at for at, unit in enumerate(dict.fromkeys(units))}
        self._place = {
            key_of(one): (at, places[unit] % GROUPS if at == STOP else 0)
            for one, at, unit in zip(examples, part, units, strict=True)
        }
        size = (len(self.rules), *self.cell)
        self._sums = {CHOOSE: RuleSums(*size), STOP: RuleSums(*size, groups=GROUPS)}
        self._received = TokenMass(*self.cell, choosing)
        yield choosing
        self._choose(choosing)
        self._scoring = True
        self.counts = {"chosen_on": len(choosing), "scored_on": len(of[SCORE])}
        yield of[SCORE]

    def _choose(self, examples: Sequence[Example]) -> None:
        plain = np.array([rule.kind in (POSITION, REST) for rule in self.rules])
        sums = self._sums[CHOOSE], self._sums[STOP]
        allowed = {"rules": plain | True, "position_and_rest": plain, "rest": plain & False}
        self.heads = {
            name: head_rules(chosen(*sums, allowed=some)) for name, some in allowed.items()
        }
        every = self.heads["rules"]
        self.heads["rules"] = with_key_tokens(every, self._received, examples, self._maps_of)
        del self._sums, self._received

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Add to the sums that choose, or to what is explained."""
        if layer.index == 0:
            self._maps = [self._maps_of(example) for example in batch.examples]
        norms = layer.value_norm.float().cpu() if {"values", "projection"} <= layer.offers else None
        for row, (example, maps) in enumerate(zip(batch.examples, self._maps, strict=True)):
            n = len(example)
            attention = layer.attention[row, :, :n, :n].float().cpu()  # [head, query, key]
            if self._scoring:
                own = None if norms is None else norms[row, :, :n]
                self._score(layer.index, attention, own, maps, example, batch.groups[[row]])
            else:
                part, group = self._place[key_of(example)]
                if layer.index == 0:
                    self._sums[part].add_rules(maps, group)
                self._sums[part].add_attention(maps, attention, layer.index, group)
                self._received.add(layer.index, example.input_ids, attention.sum(1))

    def _score(  # noqa: PLR0917
        self,
        index: int,
        attention: torch.Tensor,
        norms: torch.Tensor | None,
        maps: RuleMaps,
        example: Example,
        group: Ints,
    ) -> None:
        of_layer = {name: rules.layer(index) for name, rules in self.heads.items()}
        rows = [of_layer[name].attention(maps, example.input_ids) for name in BY[:-1]]
        rows.append(rows[0].roll(1, 0))

        def put(sums: Sums, values: torch.Tensor) -> None:
            sums.add(to_float64(values)[None], group, at=(index,))

        if index == 0:
            self.queries.add(np.array([float(len(example))]), group)
        overlap = overlaps(attention, rows)  # [head, prediction]
        put(self.attention, overlap)
        either = torch.maximum(attention, rows[0]).sum(-1)
        put(self.iou, (torch.minimum(attention, rows[0]).sum(-1) / either).sum(-1))
        everywhere = [overlap[:, 0].sum(), 0.0, 0.0, 0.0]
        if norms is not None:
            own, others = gathered(attention, norms), [gathered(one, norms) for one in rows]
            of_gathered, valued = overlaps(own, others), own.sum((1, 2))
            beyond = of_gathered[:, 0] - of_gathered[:, 1]
            put(self.gathering, of_gathered)
            put(self.valued, valued)
            put(self.beyond, beyond)
            put(self.by_rule, shares_of_rules(of_layer["rules"], maps, own, others[0]))
            everywhere[1:] = [of_gathered[:, 0].sum(), beyond.sum(), valued.sum()]
            self.unexplained.add(index, own, others[0], example)
        self.everywhere.add(np.array([[float(one) for one in everywhere]]), group)

    def result(self) -> xr.Dataset:
        """attention, gathering[layer, head, prediction], and what `explained` says they are made
        of; NaN where the sample cannot be divided, or the norms cannot be read.
        """
        cell, by = ("layer", "head"), ("layer", "head", "prediction")
        share = "share of what is gathered"
        of_queries = self.mean(self.everywhere, self._all(self.queries), bounds=SHARE)
        of_valued = self.mean(self.everywhere, self._all_valued, bounds=DIFFERENCE)
        estimates = {
            "attention": (
                self.mean(self.attention, self.queries, bounds=SHARE),
                by,
                "attention that is explained",
            ),
            "gathering": (
                self.mean(self.gathering, self._with(self.valued, len(BY)), bounds=SHARE),
                by,
                f"{share} that is explained",
            ),
            "iou": (
                self.mean(self.iou, self.queries, bounds=SHARE),
                cell,
                "attention and prediction: intersection over union",
            ),
            "beyond": (
                self.mean(self.beyond, self.valued, bounds=DIFFERENCE),
                cell,
                f"{share} that rules of content explain, beyond position and rest",
            ),
            "rule_share": (
                self.mean(self.by_rule, self._with(self.valued, MOST_RULES + 1), bounds=SHARE),
                (*cell, "slot"),
                f"{share} that is explained, by rule; the rest last",
            ),
            "all_attention": (
                of_queries.map(lambda part: part[..., 0]),
                (),
                "attention that is explained, mean over heads",
            ),
            "all_gathering": (
                of_valued.map(lambda part: part[..., 1]),
                (),
                f"{share} that is explained, mean over heads",
            ),
            "all_beyond": (
                of_valued.map(lambda part: part[..., 2]),
                (),
                f"{share} that rules of content explain, mean over heads",
            ),
        }
        variables = {
            name: Variable(value, dims, words, "probability", OURS)
            for name, (value, dims, words) in estimates.items()
        }
        dataset = labelled(variables | self._chosen(), coords={"prediction": BY})
        names = [rule.name for rule in self.rules]
        return dataset.assign_attrs(
            rules=json.dumps(names),
            rule_kinds=json.dumps([rule.kind for rule in self.rules]),
            frequent=json.dumps(list(self.frequent)),
            **self.counts,
        )

    def _all(self, queries: Sums) -> Sums:
        return Sums(queries.by_group * (self.cell[0] * self.cell[1]))

    @property
    def _all_valued(self) -> Sums:
        return Sums(self.everywhere.by_group[:, 3])

    @staticmethod
    def _with(count: Sums, size: int) -> Sums:
        return Sums(np.repeat(count.by_group[..., None], size, -1))

    def _chosen(self) -> dict[str, Variable]:
        """The rules of every head as numbers; and what is explained least."""
        nothing = np.zeros((*self.cell, 0))
        none = HeadRules(
            np.full((*self.cell, MOST_RULES), -1),
            np.zeros((*self.cell, MOST_RULES)),
            np.full(self.cell, -1),
            nothing.astype(np.int64),
            nothing,
        )
        rules = self.heads.get("rules", none)
        lacking = ((0, 0), (0, 0), (0, KEY_TOKENS - rules.key_token.shape[-1]))
        cell = ("layer", "head")
        words: dict[str, tuple[Any, tuple[str, ...], str]] = {
            "rule": (rules.rule, (*cell, "rule_place"), "number of the rule; -1: none"),
            "weight": (rules.weight, (*cell, "rule_place"), "weight of the rule"),
            "rest": (rules.rest, cell, f"number of the rest of {', '.join(RESTS)}"),
            "key_factor": (
                np.pad(rules.key_factor, lacking, constant_values=1.0),
                (*cell, "key_place"),
                "what the rules predict of a key token is multiplied by this",
            ),
        }
        tokens = np.pad(rules.key_token, lacking, constant_values=-1)
        words["key_token_id"] = (tokens, (*cell, "key_place"), "id of a key token; -1: none")
        made = {
            name: Variable(np.asarray(value), dims, said, "1", OURS, tidy=False)
            for name, (value, dims, said) in words.items()
        }
        return made | self.unexplained.variables()


def overlaps(attention: torch.Tensor, rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """[head, prediction] Σ min(attention, prediction) over queries and keys."""
    return torch.stack([torch.minimum(attention, one).sum((1, 2)) for one in rows], -1)


def shares_of_rules(
    rules: HeadRules, maps: RuleMaps, own: torch.Tensor, predicted: torch.Tensor
) -> torch.Tensor:
    """[head, slot + 1] the overlap of what is gathered and predicted, by rule; the rest last."""
    parts = rules.parts(maps)  # [head, slot, query, key]
    share = torch.minimum(own, predicted) / parts.sum(1).clamp_min(TINY)
    return torch.einsum("hsqk,hqk->hs", parts, share)


def divided(examples: Sequence[Example], *, seed: int) -> tuple[list[int], list[str]]:
    """The part of every input, of CHOOSE, STOP and SCORE, and the unit that was dealt.

    Documents of one content are one unit; where there are fewer than FEWEST, inputs are dealt.
    """
    units = unit_names(examples, {})
    if len(set(units)) < FEWEST:
        units = [key_of(example) for example in examples]
    order = sorted(set(units), key=lambda unit: generator(seed, "explained", unit).random())
    part = {unit: DEALT[at % len(DEALT)] for at, unit in enumerate(order)}
    return [part[unit] for unit in units], units


def key_of(example: Example) -> str:
    """A name of an input."""
    return f"{example.document}\0{example.id}"


def frequent_ids(examples: Sequence[Example]) -> tuple[int, ...]:
    """The FREQUENT most frequent token ids that the tokenizer did not add; ties by id."""
    counts = Counter[int]()
    for example in examples:
        counts.update(example.input_ids[~example.special].tolist())
    return tuple(sorted(counts, key=lambda token: (-counts[token], token))[:FREQUENT])


def head_rules(choices: Sequence[Sequence[Choice]]) -> HeadRules:
    """Choices [layer][head] as arrays, without key tokens."""
    cell = (len(choices), len(choices[0]))
    rule, weight = np.full((*cell, MOST_RULES), -1), np.zeros((*cell, MOST_RULES))
    rest, nothing = np.zeros(cell, np.int64), np.zeros((*cell, 0))
    for layer, head in np.ndindex(*cell):
        one = choices[layer][head]
        rule[layer, head, : len(one.rules)] = one.rules
        weight[layer, head, : len(one.rules)] = one.weights
        rest[layer, head] = one.rest
    return HeadRules(rule, weight, rest, nothing.astype(np.int64), nothing)
