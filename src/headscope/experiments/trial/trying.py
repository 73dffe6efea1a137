"""Computes what happens where labels say that it matters; `trial` reads the request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import torch
import xarray as xr

from headscope.analyses.explained.measure import frequent_ids
from headscope.analyses.explained.rules import RESTS
from headscope.claims.attention_rule import AttentionRule, RuleInput, rows_of
from headscope.claims.plan import NOTHING, OWN
from headscope.core.accumulators import Bools, Float64, Ints, finite_mean, generator
from headscope.core.head_names import Head
from headscope.core.progress import begin
from headscope.core.wording import how_many
from headscope.corpus import Corpus
from headscope.corpus.document import Example
from headscope.corpus.equal_documents import unit_names
from headscope.experiments.replay.choosing import read_inputs, spread_over
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.replay.scores import CAUSAL, MASKED
from headscope.experiments.trial.donors import OTHER_TOKEN, SAME_TOKEN, Donors
from headscope.experiments.trial.hypotheses import NO_RULE, Hypothesis, own_keys, with_label
from headscope.experiments.trial.moving import Move, Moving
from headscope.experiments.trial.outputs import MovedOutput, Outputs
from headscope.experiments.trial.own_attention import OwnAttention
from headscope.experiments.trial.queries import (
    OTHER_KEYS,
    THERE,
    Queries,
    queries_of,
    triggered,
)
from headscope.experiments.trial.result import AGAINST, OTHER_HEADS, WHOLE, trial_result
from headscope.experiments.trial.settings import BY_LOSS, LEAST, TrialSettings
from headscope.experiments.trial.terms import MEASURES, OF_MASKED, OF_NEXT, VECTORS
from headscope.model.language_model import TokenLoss, masked
from headscope.model.linears import linears
from headscope.model.model import evaluating
from headscope.model.rule_inputs import rule_input
from headscope.run.analysis import LEADING
from headscope.run.experiment import in_parts
from headscope.run.life_cycle import Meter, Progress, RunInProgress
from headscope.run.shard_files import State, joined

OTHERS = 3  # ours: other heads of the layer, drawn for each input
POOL = 400  # ours: inputs among which those are looked for where a rule applies
PART_TOKENS = 8192  # of inputs, once for each label, whose numbers are kept together
COLUMNS = (*AGAINST, SAME_TOKEN, OTHER_TOKEN, WHOLE)


def read_pool(
    scored: ScoredModel, corpus: Corpus, settings: TrialSettings
) -> tuple[list[Example], dict[str, int]]:
    """POOL inputs of the first documents, their first LEADING tokens; what was left out."""
    examples, counts = read_inputs(
        scored.model, corpus, settings, enough=POOL, limit=settings.limit, seed=settings.seed
    )
    return [one.leading(LEADING) for one in examples[:POOL]], counts


@dataclass
class TrialRun:
    """The computation behind `trial`.

    rests  [layer, head] number of the rest of each head, of RESTS
    rules  those that a run of this model and corpus has
    """

    scored: ScoredModel
    examples: Sequence[Example]
    hypotheses: Sequence[Hypothesis]
    rules: Sequence[AttentionRule]
    rests: Ints
    settings: TrialSettings
    progress: Progress | None = None
    objective: TokenLoss | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.scored.kind == MASKED:
            shown = masked(self.scored.model, self.examples, seed=self.settings.seed)
            self.examples, self.objective = shown.examples, shown.objective
        known = {rule.name: rule for rule in self.rules}
        own = OwnAttention(self.scored.model, self.examples)
        for one in self.hypotheses:
            for which in OWN:
                if one.rule == own_keys(one.heads[0], which):
                    known[one.rule] = own.rule_of(one.heads[0], which)
        self.by_name = {one.rule: known[one.rule] for one in self.hypotheses if one.rule in known}
        self.same = with_label(self.hypotheses)
        self.units = unit_names(self.examples, {})
        self.donors = Donors(self.scored.model, self.examples, self.units)
        self.gives = "values" in self.scored.model.allows

    @cached_property
    def places(self) -> list[list[int]]:
        """[hypothesis] the inputs on which it is tried, at most as many as are wanted."""
        triggers = self._triggers()
        made = []
        for one in self.hypotheses:
            there = triggers.get(one.rule, []) if not one.why else []
            rank = generator(self.settings.seed, "trial", one.rule).permutation(len(there))
            drawn = spread_over(there, self.units, rank)
            made.append(sorted(drawn[: self.settings.inputs]))
        return made

    def _triggers(self) -> dict[str, list[int]]:
        """Rule -> inputs in which it can be tried."""
        begin("places")
        triggers: dict[str, list[int]] = {name: [] for name in self.by_name}
        for at, example in enumerate(self.examples):
            read = self._read(example)
            names = list(self.by_name)
            rows = rows_of([self.by_name[name] for name in names], read)
            there = {
                name: own
                for name, own in zip(names, rows, strict=True)
                if triggered(own, read).any()
            }
            for name in there:
                triggers[name].append(at)
            self.donors.note(at, there)
        return triggers

    def why(self) -> list[str]:
        """[hypothesis] why it cannot be tried; "" where it can."""
        reasons = []
        for one, places in zip(self.hypotheses, self.places, strict=True):
            if one.why:
                reasons.append(one.why)
            elif one.rule not in self.by_name:
                reasons.append(NO_RULE)
            elif len(places) < LEAST:
                few = (
                    f"found {how_many(len(places), 'input')} where its rule applies; wanted {LEAST}"
                )
                reasons.append(few)
            else:
                reasons.append("")
        return reasons

    def compute(self, run: RunInProgress) -> xr.Dataset:
        """The group `trial`."""
        why = self.why()
        tried = [at for at, reason in enumerate(why) if not reason]
        of_input = self._of_inputs(tried)
        inputs = sorted(of_input)
        parts = [*in_parts(inputs, partial(self._size, of_input), tokens=PART_TOKENS)]
        meter = Meter(len(inputs), self.progress)
        with linears(self.scored.model.network, run.linears):
            states = run.parts(
                range(len(parts)),
                lambda number: self._part(parts[number], of_input),
                lambda number: meter.advance(len(parts[number])),
                last=True,
            )
            numbers = joined(list(states)) if parts else {}
        begin("intervals")
        return trial_result(
            self.hypotheses,
            why,
            numbers,
            self.units,
            COLUMNS,
            replicates=self.settings.replicates,
            direct=self.outputs.direct,
            score=self.score,
        )

    @property
    def score(self) -> str:
        """What says that a label matters."""
        if self.scored.kind == MASKED:
            return OF_MASKED
        by_loss = self.scored.kind == CAUSAL and self.settings.score == BY_LOSS
        return OF_NEXT if by_loss else VECTORS

    def _size(self, of_input: Mapping[int, Sequence[int]], at: int) -> int:
        return len(self.examples[at]) * len(of_input[at])

    def _of_inputs(self, tried: Sequence[int]) -> dict[int, list[int]]:
        """Input -> the hypotheses that are tried on it."""
        of_input: dict[int, list[int]] = {}
        for number in tried:
            for at in self.places[number]:
                of_input.setdefault(at, []).append(number)
        return of_input

    @cached_property
    def outputs(self) -> Outputs:
        """What the model gives."""
        with evaluating(self.scored.model.network):
            return Outputs(self.scored, self.examples, self.objective)

    def _read(self, example: Example) -> RuleInput:
        return rule_input(example, self.scored.model, frequent=self._frequent)

    @cached_property
    def _frequent(self) -> tuple[int, ...]:
        return frequent_ids(self.examples)

    def _part(self, places: Sequence[int], of_input: Mapping[int, Sequence[int]]) -> State:
        """`hypothesis`, `input` [n]; `change` [n, column, side, measure], side 0 where the rule
        applies, of the queries that have the comparison; `direct` [n, side, measure], side 0 the
        total; `scale` [n].
        """
        rows = [row for at in places for row in self._of_input(at, of_input[at])]
        names = ("hypothesis", "input", "change", "direct", "scale")
        return {name: np.array([row[at] for row in rows]) for at, name in enumerate(names)}

    def _of_input(self, at: int, numbers: Sequence[int]) -> Iterator[tuple[object, ...]]:
        example = self.examples[at]
        read = self._read(example)
        rests = rows_of([self._rest(name) for name in RESTS], read)
        moving = Moving(self.rests, torch.from_numpy(rests))
        names = sorted({self.hypotheses[number].rule for number in numbers})
        rows = dict(zip(names, rows_of([self.by_name[name] for name in names], read), strict=True))
        jobs = [
            self._job(number, at, rows[self.hypotheses[number].rule], read) for number in numbers
        ]
        moves = [(number, *one) for number, job in zip(numbers, jobs, strict=True) for one in job]
        made = self.outputs.changes(
            example,
            moving,
            [(queries, move) for *_, queries, move in moves],
            batch_tokens=self.settings.batch_tokens,
        )
        changes = {
            (number, name): (queries, change)
            for (number, name, queries, _), change in zip(moves, made, strict=True)
        }
        for number in numbers:
            own = {name: both for (of, name), both in changes.items() if of == number}
            yield number, at, *_compared(own), own[THERE][1].scale

    def _rest(self, name: str) -> AttentionRule:
        return next(rule for rule in self.rules if rule.name == name)

    def _job(
        self, number: int, at: int, rows: Float64, read: RuleInput
    ) -> Iterator[tuple[str, Queries, Move]]:
        """The moves of one hypothesis in one input, by name."""
        one, seed = self.hypotheses[number], self.settings.seed
        rng = generator(seed, "queries", one.rule, str(at))
        some = queries_of(rows, read, rng, self._masked(at))
        there = some[THERE]
        if one.expects == NOTHING:
            yield from _resting(one.heads, there, some.get(OTHER_KEYS))
            return
        for name, queries in some.items():
            yield name, queries, Move(one.heads, queries.queries, queries.keys)
        yield WHOLE, there, Move(one.heads, there.queries, there.keys, whole=True)
        for turn, others in enumerate(self._others(one, rng)):
            yield f"{OTHER_HEADS} {turn}", there, Move(others, there.queries, there.keys)
        if self.gives and (picked := self.donors.pick(one.rule, at, there, rng)):
            where, sites = picked
            for name, site in sites.items():
                gathered = self.donors.gathered(site, one.heads)
                yield name, where, Move(one.heads, where.queries, where.keys, instead=gathered)

    def _masked(self, at: int) -> Bools | None:
        """[token] whether the token of an input is masked, and predicted; None: all are alike."""
        if self.objective is None:
            return None
        return np.isin(np.arange(len(self.examples[at])), self.objective.asked[at])

    def _others(self, one: Hypothesis, rng: np.random.Generator) -> list[tuple[Head, ...]]:
        """Sets of other heads, for each head one of its layer that is not said to do the same."""
        sets: list[list[Head]] = [[] for _ in range(OTHERS)]
        for layer in dict.fromkeys(layer for layer, _ in one.heads):
            own = sum(at == layer for at, _ in one.heads)
            free = [(layer, h) for h in range(self.rests.shape[1])]
            free = [head for head in free if head not in self.same[one.rule]]
            order = [free[at] for at in rng.permutation(len(free)).tolist()]
            sets = [[*some, *order[at * own : (at + 1) * own]] for at, some in enumerate(sets)]
        return [tuple(some) for some in sets if len(some) == len(one.heads)]


def _resting(
    heads: tuple[Head, ...], there: Queries, beside: Queries | None
) -> Iterator[tuple[str, Queries, Move]]:
    """The moves of a label that says that a head takes nothing from where it rests: that weight
    goes nowhere, all weight goes nowhere, and that weight goes to other keys.
    """
    yield THERE, there, Move(heads, there.queries, there.keys, drop=True)
    yield WHOLE, there, Move(heads, there.queries, there.keys, whole=True, drop=True)
    if beside is not None:
        own = there.keys[beside.of]
        yield OTHER_KEYS, beside, Move(heads, beside.queries, own, to=beside.keys)


def _compared(some: Mapping[str, tuple[Queries, MovedOutput]]) -> tuple[Float64, Float64]:
    """[column, side, measure] and [side, measure], means over queries."""
    there = some[THERE][1]
    change = np.full((len(COLUMNS), 2, len(MEASURES)), np.nan)
    for column, name in enumerate(COLUMNS):
        there_too = [both for key, both in some.items() if key.partition(" ")[0] == name]
        for side in (0, 1) if there_too else ():
            parts = [
                finite_mean(other.total if side else there.total[:, queries.of])
                for queries, other in there_too
            ]
            change[column, side] = np.mean(parts, 0)
    return change, np.stack([finite_mean(there.total), finite_mean(there.direct)])
