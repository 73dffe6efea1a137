"""Computes what heads cost a model whose attention is replaced; `replay` reads the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyses.explained.prediction import HeadRules
from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.claims.attention_rule import AttentionRule, rows_of
from headscope.core.head_names import Head, head_named
from headscope.core.progress import begin, phase
from headscope.core.whole_file import sha256_of
from headscope.corpus import Corpus
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import InputError, unknown
from headscope.experiments.replay import terms
from headscope.experiments.replay.choosing import (
    Chosen,
    Halves,
    choose_stand_ins,
    costs_alone,
    halves_of,
    read_inputs,
    scope_of_inputs,
)
from headscope.experiments.replay.fitted_weights import STEP_TOKENS, FittedWeights
from headscope.experiments.replay.head_sets import HeadSet, chosen_set, sets_by_share
from headscope.experiments.replay.of_atlas import AtlasRules
from headscope.experiments.replay.replacements import (
    StandIns,
    of_another_head,
    replacing,
    with_own,
)
from headscope.experiments.replay.result import replay_result
from headscope.experiments.replay.rule_file import OwnRules, digest_of_rules
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.replay.scores import (
    ANSWERS,
    VECTORS,
    AnswerScore,
    Difference,
    LossScore,
    OutputScore,
    VectorScore,
    difference_of,
)
from headscope.experiments.replay.settings import (
    ALONE,
    ANOTHER,
    OUTPUT,
    REST,
    RULES,
    SHARES,
    YOURS,
    ReplaySettings,
)
from headscope.model.linears import linears
from headscope.model.model import Model
from headscope.model.variants import check
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, in_parts, run_experiment
from headscope.run.life_cycle import Meter, RunInProgress
from headscope.run.sampled_analyses import few_of
from headscope.run.shard_files import State, joined
from headscope.run.store import Run

PART_TOKENS = 1024  # of the inputs whose numbers are kept together, so that a run can go on
HASHED = 3  # inputs, whose rows say which rules a user wrote in Python
READ = 20  # ours: times as many inputs are read as are wanted, and of these some are drawn


def replay_run(
    scored: ScoredModel,
    corpus: Corpus,
    settings: ReplaySettings,
    own: Mapping[Head, OwnRules],
    *,
    atlas: AtlasRules | None = None,
    output: str | Path | None = None,
    execution: Execution | None = None,
) -> Run:
    """Chooses rules, puts them in the place of heads, and compares outputs: a run.

    atlas  whose rules are taken; None: they are chosen here
    """
    execution, model = execution or Execution(), scored.model
    enough = READ * (settings.inputs + settings.choosing)
    examples, counts = read_inputs(
        model, corpus, settings, enough=enough, limit=settings.limit, seed=settings.seed
    )
    halves = halves_of(
        examples, choosing=settings.choosing, trying=settings.inputs, seed=settings.seed
    )
    shape = model.shape
    named = [*map(head_named, settings.heads or own)]
    places = [(shape.names.place(layer), head) for layer, head in (*named, *own)]
    check([frozenset(places)], shape.names, layers=shape.layers, heads=shape.heads)
    work = ReplayRun(
        scored,
        corpus,
        halves,
        settings,
        places[: len(named)],
        dict(zip(places[len(named) :], own.values(), strict=True)),
        Meter(len(halves.trying), execution.progress),
        atlas,
    )
    _ = work.rules  # names are looked up before anything is written
    request = ExperimentRequest(
        "explain",
        model,
        corpus=corpus.describe(),
        examples=halves.all,
        settings={
            **asdict(settings),
            "kind": scored.kind,
            "asked": work.score.digest,
            "trying": len(halves.trying),
            "own_rules": work.digest_of_own,
            **({"atlas": atlas.digest} if atlas else {}),
        },
        notes=terms.atlas_notes(work.chosen_on),
        seed=settings.seed,
        replicates=settings.replicates,
        batch_tokens=settings.batch_tokens,
        counts=counts,
        divided=True,
    )
    return run_experiment(request, work.compute, output=output, execution=execution)


@dataclass
class ReplayRun:
    """The computation behind `replay`.

    heads  places of the heads that the user chose; none: shares of all heads
    own    place -> the rules that the user wants tried there
    atlas  whose rules are taken; None: they are chosen here
    """

    scored: ScoredModel
    corpus: Corpus
    halves: Halves
    settings: ReplaySettings
    heads: Sequence[Head]
    own: Mapping[Head, OwnRules]
    meter: Meter
    atlas: AtlasRules | None = None
    chosen: Chosen = field(init=False)

    @cached_property
    def score(self) -> OutputScore:
        """What is compared, of the inputs that try."""
        return self._score(self.halves.trying)

    def _score(self, examples: Sequence[Example]) -> OutputScore:
        kind = self.scored.kind
        if kind in (ANSWERS, VECTORS):
            return AnswerScore(examples) if kind == ANSWERS else VectorScore(examples)
        return LossScore.of(self.scored.model, kind, examples, seed=self.settings.seed)

    @cached_property
    def scope(self) -> Any:
        """What rules know of a run."""
        settings = self.settings
        scope = scope_of_inputs(
            self.scored.model,
            self.halves.choosing,
            replicates=settings.replicates,
            seed=settings.seed,
        )
        return scope if self.atlas is None else replace(scope, relations=self.atlas.relations)

    @cached_property
    def tried(self) -> list[AttentionRule]:
        """The rules that a head may have."""
        rules = rules_of_run(self.scope)
        return rules if self.atlas is None else self.atlas.rules(rules)

    @cached_property
    def chosen_on(self) -> str:
        """Whether inputs that try may have chosen the rules: "possible", "no", "unknown"."""
        return "no" if self.atlas is None else self.atlas.has_read(self.corpus.describe())

    @cached_property
    def rules(self) -> list[AttentionRule]:
        """All rules, the user's last; InputError for a name that none has, or two have."""
        rules = {rule.name: rule for rule in self.tried}
        every = (rule for one in self.own.values() for rule in one.rules)
        for rule in every:
            if isinstance(rule, str):
                if rule not in rules:
                    raise unknown("rule", rule, rules)
            elif rules.setdefault(rule.name, rule) is not rule:
                raise InputError(f"two rules are called {rule.name!r}; rename yours")
        for one in self.own.values():
            if one.rest and one.rest not in RESTS:
                raise unknown("rest", one.rest, RESTS)
        return list(rules.values())

    @property
    def digest_of_own(self) -> str:
        """Hex sha256 of the user's rules, and of what those give that are no names; "" without."""
        own = [rule for one in self.own.values() for rule in one.rules if not isinstance(rule, str)]
        if not own:
            return digest_of_rules(self.own)
        made = StandIns(self.scored.model, own, {}, np.zeros(0), ())
        rows = (rows_of(own, made.read(one)) for one in self.halves.trying[:HASHED])
        return digest_of_rules(self.own) + sha256_of(one.tobytes() for one in rows)

    @cached_property
    def sets(self) -> list[HeadSet]:
        """The sets of heads that are replaced."""
        shape = self.scored.model.shape
        if self.heads:
            return chosen_set(self.heads, (shape.layers, shape.heads))
        settings = self.settings
        return sets_by_share(
            self.chosen.best(settings.order),
            settings.shares or SHARES,
            draws=settings.draws,
            seed=settings.seed,
        )

    @property
    def replacements(self) -> tuple[str, ...]:
        """What stands in for heads; the user's rules behind ours."""
        names = self.settings.replacements
        return names if not self.own else (YOURS, *names)

    def compute(self, run: RunInProgress) -> dict[str, xr.Dataset]:
        """The groups `replay` and `explained`."""
        (state,) = run.parts([0], lambda _: self._choose(run.linears), lambda number: None)
        self.chosen = Chosen.of_state(state)
        examples = self.score.examples
        parts = [*in_parts(range(len(examples)), lambda at: len(examples[at]), tokens=PART_TOKENS)]
        stand_ins = self._stand_ins(self.chosen)
        with linears(self.scored.model.network, run.linears):
            states = run.parts(
                range(1, len(parts) + 1),
                lambda number: self._part(stand_ins, parts[number - 1]),
                lambda number: self.meter.advance(len(parts[number - 1])),
                last=True,
            )
            numbers = joined(list(states))
        begin("intervals")
        return {"replay": self._result(numbers), "explained": self.chosen.explained}

    def _result(self, numbers: State) -> xr.Dataset:
        shape, settings = self.scored.model.shape, self.settings
        replayed = replay_result(
            numbers,
            self.score,
            self._units(),
            self.sets,
            self.replacements,
            shape=(shape.layers, shape.heads),
            best=self.chosen.best(settings.order),
            replicates=settings.replicates,
            fitted=self.chosen.fitted.get(RULES),
        )
        return replayed.assign_attrs(
            ordered_by=settings.order,
            weights_by=settings.weights if self.chosen.fitted else "attention",
            rules_of="inputs" if self.atlas is None else "atlas",
            chosen_on_tried=self.chosen_on,
            # of few documents inputs were dealt, more than there are documents
            units_are="inputs" if replayed.attrs["units"] > self._documents else "documents",
        )

    @property
    def _documents(self) -> int:
        return len({one.document for one in self.halves.trying})

    def _units(self) -> list[str]:
        unit = {
            (one.document, one.id): name
            for one, name in zip(self.halves.trying, self.halves.units, strict=True)
        }
        return [unit[one.document, one.id] for one in self.score.examples]

    def _choose(self, kind: str) -> State:
        body, examples = self.scored.body, self.halves.choosing
        made = choose_stand_ins(
            body,
            self.corpus,
            examples,
            self.scope,
            self.tried,
            explained=None if self.atlas is None else self.atlas.explained,
            linears=kind,
        )
        if self.settings.order == ALONE and not self.heads:
            stand_ins, read = self._stand_ins(made), few_of(self._leading())
            made = replace(made, cost=costs_alone(stand_ins, self._difference(read), kind))
        if self.settings.weights == OUTPUT:
            self.chosen = made  # orders the heads of sets
            made = replace(made, fitted=self._fitted(made))
        return made.state()

    def _fitted(self, chosen: Chosen) -> dict[str, HeadRules]:
        """What stands in -> its rules, with weights fitted to the output of inputs that choose."""
        sets, stand_ins = [one.heads for one in self.sets], self._stand_ins(chosen)
        difference, seed = self._difference(self._leading()), self.settings.seed
        fits = [
            FittedWeights(stand_ins, name, difference, sets, seed)
            for name in (RULES, ANOTHER)
            if name in self.replacements
        ]
        with phase("weights", sum(fit.count for fit in fits), "steps") as advance:
            return {fit.name: fit.fit(advance) for fit in fits}

    def _leading(self) -> list[Example]:
        return [one.leading(STEP_TOKENS) for one in self.halves.choosing]

    def _difference(self, examples: Sequence[Example]) -> Difference:
        return difference_of(self.scored.model, self.scored.kind, examples, seed=self.settings.seed)

    def _stand_ins(self, chosen: Chosen) -> StandIns:
        rules = chosen.rules
        heads = {RULES: rules, REST: chosen.rest_alone, ANOTHER: of_another_head(rules)}
        heads[YOURS] = with_own(rules, self.own, [rule.name for rule in self.rules])
        heads |= chosen.fitted
        return StandIns(self.scored.model, self.rules, heads, chosen.profile, chosen.frequent)

    def _part(self, stand_ins: StandIns, places: Sequence[int]) -> State:
        """What `Replayed.batch` gives of the inputs at these places."""
        sets = [one.heads for one in self.sets]
        work = Replayed(self.scored.model, self.score, sets, self.replacements)
        examples = [self.score.examples[at] for at in places]
        order: list[int] = []
        states: list[State] = []
        for rows in batches(examples, budget=self.settings.batch_tokens):
            states.append(work.batch(stand_ins, [places[row] for row in rows]))
            order += rows
        back = np.argsort(order)
        return {name: values[back] for name, values in joined(states).items()}


@dataclass(frozen=True)
class Replayed:
    """Outputs of a model in which sets of heads attend by their replacements.

    sets  the heads of each, by their places
    """

    model: Model
    score: OutputScore
    sets: Sequence[frozenset[Head]]
    replacements: Sequence[str]

    def batch(self, stand_ins: StandIns, places: Sequence[int]) -> State:
        """`score` [input, set, replacement, measure], `whole` [input, measure], and more."""
        model, score = self.model, self.score
        batch = model.batch([score.examples[at] for at in places])
        own = stand_ins.of(batch)
        size = (len(places), len(self.sets), len(self.replacements), len(score.measures))
        scores = np.empty(size)
        with replacing(model.network) as change:
            whole = score.output(model, batch, places)
            for column, name in enumerate(self.replacements):
                rows = own.rows(name)
                for at, heads in enumerate(self.sets):
                    change.use(heads, rows)
                    output = score.output(model, batch, places)
                    scores[:, at, column] = score.numbers(output, whole, batch)
        kept = {f"kept_{name}": values for name, values in score.kept(whole, batch).items()}
        return {"score": scores, "whole": score.numbers(whole, whole, batch), **kept}
