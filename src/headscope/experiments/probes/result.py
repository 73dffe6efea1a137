"""Scores the predictions of probes, as labelled results.

Words, arcs and sentences of the test set are counted in all sentences, and without each group of
them: arrays of draws are [replicate + 1, …], 0 the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.core.accumulators import Array, Bools, Float64, Ints, finite_mean, left_out, ratio
from headscope.core.display import printable
from headscope.core.intervals import CORRELATION, SHARE, estimate
from headscope.core.results import Variable, labelled
from headscope.experiments.probes.probe_plan import ProbePlan, ProbeTraining
from headscope.experiments.probes.trees import TreeSentence, gold_edges
from headscope.run.shard_files import State

CLARK = "Clark et al. 2019, §5"
HEWITT = "Hewitt and Manning 2019"
OURS = "headscope"
DIRECTIONS = ("dependent_to_head", "head_to_dependent")
LENGTHS = range(5, 51)  # of sentences whose rank correlations are averaged (Hewitt and Manning)


def probe_result(
    plan: ProbePlan,
    trials: dict[ProbeTraining, State],
    spread: Float64 | None,
    structural: dict[int, State],
) -> xr.Dataset:
    """The group `probes`; intervals are over the test sentences.

    trials      what each trained probe answers; see `pair_probes.trial`
    spread      [direction, unit] see `pair_probes.head_spread`; None without attention
    structural  by layer, see `structural.judged`
    """
    settings = plan.settings
    marks = TreeAccuracy(plan.splits[2].sentences, replicates=settings.replicates)
    largest = {name: _largest(trials, name) for name in plan.names if name != "structural"}
    variables = _scores(marks, largest) | _curve(marks, list(largest), trials)
    variables |= _heads(plan, largest, spread) | _structural(plan, marks, structural)
    coords = {
        "probe": list(largest),
        "probe_other": list(largest),
        "direction": DIRECTIONS,
        "relation": [printable(name) for name in marks.relations],
        "size": _sizes(trials),
    }
    dataset = labelled(variables, coords=coords)
    for variable in dataset.data_vars.values():
        variable.attrs["n"] = len(marks.units)
    return dataset.assign_attrs(_about(plan, marks))


def _largest(trials: dict[ProbeTraining, State], name: str) -> list[State]:
    """[seed] the trials of a probe on the whole training set."""
    size = max(job.size for job in trials if job.probe == name)
    return [state for job, state in trials.items() if job.probe == name and job.size == size]


def _sizes(trials: dict[ProbeTraining, State]) -> list[int]:
    """Training sizes of the curve, with the whole set; none for a rule."""
    return sorted({job.size for job in trials if job.size})


def _scores(marks: TreeAccuracy, trials: dict[str, list[State]]) -> dict[str, Variable]:
    if not trials:
        return {}

    def draws(of: Callable[[State], Float64]) -> Float64:
        """[replicate + 1, probe, …] means over seeds."""
        each = [np.mean([of(state) for state in some], axis=0) for some in trials.values()]
        return np.stack(each, 1)

    def uas(state: State) -> Float64:
        return marks.of_words(state["head"] == marks.head)

    of_probe = draws(uas)  # [replicate + 1, probe]
    difference = of_probe[:, :, None] - of_probe[:, None, :]  # [replicate + 1, probe, probe_other]
    over, variable = "words whose head is found", marks.variable
    variables = {
        "uas": variable(of_probe, ("probe",), f"{over}, without punctuation", CLARK),
        "uas_with_punctuation": variable(
            draws(lambda s: marks.of_words(s["head"] == marks.head, punctuation=True)),
            ("probe",),
            f"{over}, with punctuation",
        ),
        "uuas": variable(
            draws(lambda s: marks.of_edges(s["edges"])),
            ("probe",),
            "arcs of the maximum spanning tree, undirected and without punctuation",
        ),
        "difference": variable(
            difference, ("probe", "probe_other"), "UAS of the first less that of the other probe"
        ),
        "relation_uas": variable(
            draws(lambda s: marks.of_relations(s["head"] == marks.head)),
            ("probe", "relation"),
            f"{over}, by relation",
        ),
    }
    if all("tree" in state for some in trials.values() for state in some):
        variables["uas_of_tree"] = variable(
            draws(lambda s: marks.of_words(s["tree"] == marks.head)),
            ("probe",),
            f"{over} by the likeliest directed tree, without punctuation",
        )
    variables["count"] = Variable(marks.count, ("relation",), "words asked for", "1", OURS)
    if max(map(len, trials.values())) > 1:
        by_probe = ([uas(state)[0] for state in some] for some in trials.values())
        table = np.array(list(zip_longest(*by_probe, fillvalue=np.nan))).T  # [probe, seed]
        text = f"{over}, without punctuation, by first weights"
        variables["uas_by_seed"] = Variable(table, ("probe", "seed"), text, "1", OURS)
    return variables


def _curve(
    marks: TreeAccuracy, names: list[str], trials: dict[ProbeTraining, State]
) -> dict[str, Variable]:
    """UAS of the first seed by training size; NaN where not trained."""
    sizes = _sizes(trials)
    if len(sizes) < 2:
        return {}
    draws = np.full((marks.weights.shape[1], len(names), len(sizes)), np.nan)
    for job, state in trials.items():
        if job.size and job.seed == 0:
            of_words = marks.of_words(state["head"] == marks.head)
            draws[:, names.index(job.probe), sizes.index(job.size)] = of_words
    text = "words whose head is found, without punctuation, by sentences trained on"
    return {"curve": marks.variable(draws, ("probe", "size"), text)}


def _heads(
    plan: ProbePlan, trials: dict[str, list[State]], spread: Float64 | None
) -> dict[str, Variable]:
    if "attention" not in trials or spread is None:
        return {}
    weights = np.stack([state["weight"] for state in trials["attention"]]).astype(np.float64)
    weight = np.asarray(weights.mean(0))  # [direction, unit]
    influence = "weight times spread: how far a head moves the scores of candidates apart"
    rows = {
        "weight": (weight, "weight of a head in the probe on attention", CLARK),
        "spread": (spread, "spread of attention between the candidates of a word", OURS),
        "influence": (weight * spread, influence, OURS),
    }
    variables = {}
    for name, (values, text, source) in rows.items():
        by_head = values.reshape(len(DIRECTIONS), -1, plan.model.shape.heads)
        by_head = np.moveaxis(by_head, 0, -1)  # [layer, head, direction]
        dims = ("layer", "head", "direction")
        variables[f"head_{name}"] = Variable(by_head, dims, text, "1", source)
    if plan.labels is not None:
        labels = np.array([[printable(x) for x in row] for row in plan.labels], object)
        text = "what an atlas says of the head"
        variables["head_label"] = Variable(labels, ("layer", "head"), text, "1", OURS)
    return variables


def _structural(
    plan: ProbePlan, marks: TreeAccuracy, states: dict[int, State]
) -> dict[str, Variable]:
    """[layer] scores of the structural probe; NaN for layers left out."""
    ranks = "Spearman's ρ of predicted and true {}, mean over lengths 5 to 50"
    rows: dict[str, tuple[str, Callable[[State], Float64]]] = {
        "uuas": (
            "arcs of the minimum spanning tree of predicted distances",
            lambda s: marks.of_edges(s["edges"]),
        ),
        "distance": (ranks.format("distances"), lambda s: marks.by_length(s["distance"])),
        "depth": (ranks.format("depths"), lambda s: marks.by_length(s["depth"])),
        "root": (
            "sentences whose least deep word is the root",
            lambda s: marks.of_sentences(s["root"]),
        ),
    }
    variables = {}
    for name, (text, of) in rows.items() if states else ():
        draws = np.full((marks.weights.shape[1], plan.model.shape.layers), np.nan)
        for layer, state in states.items():
            draws[:, layer] = of(state)
        variables[f"structural_{name}"] = marks.variable(draws, ("layer",), text, HEWITT)
    return variables


def _about(plan: ProbePlan, marks: TreeAccuracy) -> dict[str, Any]:
    settings, vectors = plan.settings, plan.vectors
    about: dict[str, Any] = {
        **{  # windows of one sentence count once
            f"{split.name}_sentences": len({s.example.document for s in split.sentences})
            for split in plan.splits
        },
        "test_words": int(marks.asked.sum()),
        "not_asked": int((~marks.asked).sum()),
        "root": "a learned constant" if plan.constant_root else "attention to special tokens",
        "lacking": " ".join(plan.lacking),
        "epochs": settings.epochs,
        "legacy_root_shift": int(settings.legacy_root_shift),
        "pieces": settings.pieces,
    }
    if vectors is not None:
        about |= {
            "words": printable(vectors.name),
            "words_dim": vectors.dim,
            "words_unknown": vectors.unknown(f for s in marks.sentences for f in s.forms),
            "words_duplicates": vectors.duplicates,
        }
    return about


class TreeAccuracy:
    """Counts of right words, arcs and sentences in the test set.

    head       [word] as `TreeSentence.head`
    asked      [word] whether its head can be asked for
    scored     [word] whether it counts without punctuation
    relation   [word] index into `relations`, the most frequent first
    count      [relation] words asked for
    units      the sentences of the treebank, which are left out; windows of one belong together
    weights    [unit, replicate + 1] whether each is left in
    """

    def __init__(self, sentences: Sequence[TreeSentence], *, replicates: int) -> None:
        self.sentences = sentences
        self.head: Ints = np.concatenate([s.head for s in sentences])
        self.asked: Bools = self.head >= 0
        self.scored: Bools = np.concatenate([s.scored for s in sentences])
        self.lengths = np.array([len(s) for s in sentences])
        counts = Counter(r for s in sentences for r in s.relations)
        self.relations = sorted(counts, key=lambda name: (-counts[name], name))
        number = {name: at for at, name in enumerate(self.relations)}
        self.relation = np.array([number[r] for s in sentences for r in s.relations])
        self.count: Ints = np.bincount(self.relation[self.asked], minlength=len(self.relations))
        self.edges = np.array([len(gold_edges(s)) for s in sentences])  # [sentence]
        self.unit, units = pd.factorize(np.array([s.example.document for s in sentences], object))
        self.units = units.tolist()
        self.of_word = np.repeat(self.unit, self.lengths)  # [word] its unit
        self.weights = left_out(self.units, replicates=replicates)

    def variable(
        self, draws: Float64, dims: Sequence[str], text: str, source: str = OURS
    ) -> Variable:
        """The value and its interval from [replicate + 1, …], labelled."""
        signed = "ρ" in text or text.startswith("UAS of the first less")
        bounds = CORRELATION if signed else SHARE
        return Variable(estimate(draws, bounds=bounds), dims, text, "1", source)

    def of_words(self, right: Array, *, punctuation: bool = False) -> Float64:
        """UAS: the share of words with the right head.

        right        [word] whether, or by how many of several probes
        punctuation  whether it counts as well
        """
        counted = self.asked & (punctuation | self.scored)
        return self._share(self.of_word, right * counted, counted)

    def of_relations(self, right: Array) -> Float64:
        """[replicate + 1, relation] UAS of each relation."""
        size = len(self.relations)
        cell = self.of_word * size + self.relation  # [word]
        return self._share(cell, right * self.asked, self.asked, size)

    def of_edges(self, right: Array) -> Float64:
        """UUAS: the share of right undirected arcs, from their number in each sentence."""
        return self._share(self.unit, right, self.edges)

    def of_sentences(self, values: Float64) -> Float64:
        """The mean over sentences; NaN is left out."""
        there = ~np.isnan(values)
        return self._share(self.unit, np.where(there, values, 0), there)

    def by_length(self, values: Float64) -> Float64:
        """The mean over LENGTHS of the means over sentences of that length."""
        there = [length for length in LENGTHS if (self.lengths == length).any()]
        if not there:
            return np.full(self.weights.shape[1], np.nan)
        apart = [np.where(self.lengths == length, values, np.nan) for length in there]
        table = np.stack([self.of_sentences(one) for one in apart])  # [length, replicate + 1]
        return finite_mean(table, 0)

    def _share(self, cell: Ints, part: Array, whole: Array, *cells: int) -> Float64:
        """[replicate + 1, *cells] Σ part / Σ whole over the words or sentences of each cell [unit,
        *cells].
        """
        shape = (len(self.units), *cells)
        sums = [
            np.bincount(cell, x.astype(np.float64), np.prod(shape)).reshape(shape)
            for x in (part, whole)
        ]
        return ratio(self.weights.T @ sums[0], self.weights.T @ sums[1])
