"""A trial of a run's labels, as a run of its own: that run, and what was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyses.explained.rules import RESTS, rules_of_run
from headscope.claims.attention_rule import AttentionRule
from headscope.core.accumulators import Ints
from headscope.core.head_names import Head, head_named
from headscope.core.results import group, own_layers
from headscope.corpus import Corpus
from headscope.corpus.document import Example
from headscope.errors import CorpusError, InputError, ModelError, unknown
from headscope.experiments.replay.choosing import scope_of_inputs
from headscope.experiments.replay.rule_file import OwnRules, digest_of_rules
from headscope.experiments.replay.scored_model import ScoredModel, scored_model
from headscope.experiments.replay.scores import CAUSAL, MASKED, VECTORS
from headscope.experiments.trial.hypotheses import Hypothesis, hypotheses_of
from headscope.experiments.trial.settings import BY_LOSS, TrialSettings
from headscope.experiments.trial.trying import TrialRun, read_pool
from headscope.model.variants import check
from headscope.run.execution import Execution
from headscope.run.experiment import ExperimentRequest, run_experiment
from headscope.run.life_cycle import RunInProgress
from headscope.run.model_of_run import ModelOfRun
from headscope.run.store import Run
from headscope.tasks.task_request import Loading

EVEN = RESTS.index("all tokens evenly")


def try_labels(
    run: Run,
    model: Any,
    corpus: Corpus,
    settings: TrialSettings,
    *,
    own: Mapping[Head, OwnRules],
    loading: Loading,
    output: str | Path | None = None,
    execution: Execution | None = None,
) -> Run:
    """Tries every label of a run, and the user's own rules: the run again, with `trial`.

    raises  InputError where there is nothing to try; ModelError for another model than the run's
    """
    execution = execution or Execution()
    if not (labels := hypotheses_of(run.tree)) and not own:
        raise InputError(
            f"found no label in {run.path or 'the run'}; wanted some head with one, or --rules"
        )
    source = ModelOfRun.of(run)
    scored = _scored(source, model, loading, settings.score)
    examples, counts = read_pool(scored, corpus, settings)
    if not examples:
        raise CorpusError("found no input of two tokens or more; wanted text")
    work = _work(scored, examples, settings, labels, own, run.tree)
    work.progress = execution.progress
    manifest = run.manifest
    request = ExperimentRequest(
        "trial",
        scored.model,
        corpus=manifest["corpus"],
        examples=examples,
        settings={
            **asdict(settings),
            "kind": scored.kind,
            "labels_of": source.digest,
            "own_rules": digest_of_rules(own),
        },
        seed=settings.seed,
        replicates=settings.replicates,
        batch_tokens=settings.batch_tokens,
        counts=manifest["counts"],
        divided=True,
        notes=manifest.get("notes", ()),
    )

    def compute(progress: RunInProgress) -> dict[str, xr.Dataset]:
        tried_on = corpus.describe()
        read = {"read": tried_on["kind"], "chosen_on_tried": source.has_read(tried_on), **counts}
        return {**groups_of(run.tree), "trial": work.compute(progress).assign_attrs(read)}

    return run_experiment(request, compute, output=output, execution=execution)


def _work(  # noqa: PLR0917
    scored: ScoredModel,
    examples: Sequence[Example],
    settings: TrialSettings,
    labels: Sequence[Hypothesis],
    own: Mapping[Head, OwnRules],
    tree: xr.DataTree,
) -> TrialRun:
    """The trial of the labels that are wanted, and of the user's rules."""
    shape = scored.model.shape
    cell = (shape.layers, shape.heads)
    wanted = {(shape.names.place(layer), head) for layer, head in map(head_named, settings.heads)}
    places = {(shape.names.place(layer), head): one for (layer, head), one in own.items()}
    check([frozenset(wanted), frozenset(places)], shape.names, layers=cell[0], heads=cell[1])
    seed = settings.seed
    scope = scope_of_inputs(scored.model, examples, replicates=settings.replicates, seed=seed)
    rules = rules_of_run(scope)
    mine, more = _own_hypotheses(places, rules)
    chosen = [*_of_heads(labels, wanted), *mine]
    return TrialRun(scored, examples, chosen, [*rules, *more], rests_of(tree, cell), settings)


def _of_heads(hypotheses: Sequence[Hypothesis], wanted: set[Head]) -> Sequence[Hypothesis]:
    """Those of single heads that are wanted; all where none is named."""
    if not wanted:
        return hypotheses
    chosen = [one for one in hypotheses if len(one.heads) == 1 and wanted.issuperset(one.heads)]
    if not chosen:
        raise InputError("found no label of the heads that --heads names; wanted one that has some")
    return chosen


def _own_hypotheses(
    own: Mapping[Head, OwnRules], rules: list[AttentionRule]
) -> tuple[list[Hypothesis], list[AttentionRule]]:
    """The user's rules as hypotheses, and those that are new."""
    names, more = {rule.name for rule in rules}, dict[str, AttentionRule]()
    made = list[Hypothesis]()
    for place, one in own.items():
        for rule in one.rules:
            if isinstance(rule, str):
                if rule not in names:
                    raise unknown("rule", rule, sorted(names))
            elif rule.name in names or more.setdefault(rule.name, rule) is not rule:
                raise InputError(f"two rules are called {rule.name!r}; rename yours")
        made += [Hypothesis(name, "", name, (place,)) for name in one.names]
    return made, list(more.values())


def _scored(source: ModelOfRun, model: Any, loading: Loading, score: str | None) -> ScoredModel:
    """The run's model and stack, with its language-model head where it has one and is not tried by
    vectors; a decoder always has it.

    raises  ModelError for a loss without such a head
    """
    stack = source.stack_with(None)
    if model is None:
        model, loading = source.model["name"], source.loading(loading)
    with source.loading_its_model():
        try:
            scored = scored_model(model, None, loading, stack)
        except InputError:  # a classifier whose answers are not one of several classes
            scored = scored_model(model, VECTORS, loading, stack)
    source.refuse_other(scored.model)
    if score == BY_LOSS and scored.kind not in (CAUSAL, MASKED):
        raise ModelError(
            f"{scored.model.name!r} is read without a language-model head, so it has no loss; "
            "wanted one, or --score vectors"
        )
    keeps = scored.kind == CAUSAL or (scored.kind == MASKED and score != VECTORS)
    return scored if keeps else ScoredModel(scored.body, VECTORS)


def rests_of(tree: xr.DataTree, cell: tuple[int, int]) -> Ints:
    """[layer, head] number of the rest of each head; evenly where the run has not chosen one."""
    explained = group(tree, "explained")
    if explained is None or "rest" not in explained:
        return np.full(cell, EVEN)
    return explained["rest"].sel(explains="attention").transpose("layer", "head").values.astype(int)


def groups_of(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    """All groups of a run by path, with places of layers as before it was finished."""
    groups = {
        node.path.strip("/"): node.to_dataset(inherit=False)
        for node in tree.subtree
        if node is not tree
    }
    numbers = [int(one) for one in str(tree.attrs.get("layer_numbers", "")).split()]
    if not numbers:
        return groups
    place = np.zeros(max(numbers) + 1, np.int64)
    place[numbers] = np.arange(len(numbers))
    return {path: own_layers(one, place.tolist()) for path, one in groups.items()}
