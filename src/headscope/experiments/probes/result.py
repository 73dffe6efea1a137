"""Makes labelled numbers of what the probes of a run answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.accumulators import Float64
from headscope.core.labelled import Variable, labelled
from headscope.core.results import printable
from headscope.experiments.probes.probe_plan import ProbePlan, ProbeTraining
from headscope.experiments.probes.tree_accuracy import TreeAccuracy
from headscope.run.store import State

CLARK = "Clark et al. 2019, §5"
HEWITT = "Hewitt and Manning 2019"
OURS = "headscope"
DIRECTIONS = ("dependent_to_head", "head_to_dependent")


@dataclass
class ProbeAnswers:
    """The answers of all probes of a run.

    trials      what each trained probe answers; see `train_and_test.trial`
    spread      [direction, unit] see `train_and_test.head_spread`; None without attention
    structural  by layer, see `structural.judged`
    """

    trials: dict[ProbeTraining, State]
    spread: npt.NDArray[np.float64] | None
    structural: dict[int, State]


def probe_result(asking: ProbePlan, found: ProbeAnswers) -> xr.Dataset:
    """The group `probes`; intervals are over the test sentences."""
    settings = asking.settings
    test = asking.splits[2].sentences
    marks = TreeAccuracy(test, replicates=settings.replicates, seed=settings.seed)
    largest = {name: _largest(found.trials, name) for name in asking.names if name != "structural"}
    variables = _scores(marks, largest) | _curve(marks, list(largest), found.trials)
    variables |= _heads(asking, largest, found) | _structural(asking, marks, found.structural)
    coords = {
        "probe": list(largest), "probe_other": list(largest), "direction": DIRECTIONS,
        "relation": [printable(name) for name in marks.relations],
        "size": sorted({job.size for job in found.trials if job.size}),
    }  # fmt: skip
    dataset = labelled(variables, coords=coords)
    for variable in dataset.data_vars.values():
        variable.attrs["n"] = len(marks.units)
    return dataset.assign_attrs(_about(asking, marks))


def _largest(trials: dict[ProbeTraining, State], name: str) -> list[State]:
    """[seed] the trials of a probe on all training sentences."""
    size = max(job.size for job in trials if job.probe == name)
    return [state for job, state in trials.items() if job.probe == name and job.size == size]


# --- scores of probes that name a head ------------------------------------------------------


def _scores(marks: TreeAccuracy, trials: dict[str, list[State]]) -> dict[str, Variable]:
    if not trials:
        return {}

    def draws(of: Callable[[State], Float64]) -> Float64:
        """[replicate + 1, probe, …] means over seeds."""
        each = [np.mean([of(state) for state in some], axis=0) for some in trials.values()]
        return np.stack(each, 1)  # [replicate + 1, probe, …]

    uas = draws(lambda s: marks.of_words(s["head"] == marks.head))
    difference = uas[:, :, None] - uas[:, None, :]  # [replicate + 1, probe, probe_other]
    by_seed = [[marks.of_words(s["head"] == marks.head)[0] for s in x] for x in trials.values()]
    rows = {
        "uas": (uas, ("probe",), "words whose head is found, without punctuation", CLARK),
        "uas_with_punctuation": (
            draws(lambda s: marks.of_words(s["head"] == marks.head, punctuation=True)),
            ("probe",), "words whose head is found, with punctuation", OURS,
        ),
        "uuas": (
            draws(lambda s: marks.of_edges(s["edges"])), ("probe",),
            "arcs of the maximum spanning tree, undirected and without punctuation", OURS,
        ),
        "difference": (
            difference, ("probe", "probe_other"), "UAS of the first less that of the other probe",
            OURS,
        ),
        "relation_uas": (
            draws(lambda s: marks.of_relations(s["head"] == marks.head)), ("probe", "relation"),
            "words whose head is found, by relation", OURS,
        ),
    }  # fmt: skip
    if all("tree" in state for some in trials.values() for state in some):
        of_tree = draws(lambda s: marks.of_words(s["tree"] == marks.head))
        text = "words whose head is found by the likeliest directed tree, without punctuation"
        rows["uas_of_tree"] = (of_tree, ("probe",), text, OURS)
    found = {
        name: Variable(marks.estimate(value), dims, text, "1", source)
        for name, (value, dims, text, source) in rows.items()
    }
    found["count"] = Variable(marks.count, ("relation",), "words asked for", "1", OURS)
    if max(map(len, by_seed)) > 1:
        most = max(map(len, by_seed))
        table = np.array([row + [np.nan] * (most - len(row)) for row in by_seed])
        text = "words whose head is found, without punctuation, by first weights"
        found["uas_by_seed"] = Variable(table, ("probe", "seed"), text, "1", OURS)
    return found


def _curve(
    marks: TreeAccuracy, names: list[str], trials: dict[ProbeTraining, State]
) -> dict[str, Variable]:
    """UAS of the first seed by the size of the training set; NaN for what is not trained."""
    sizes = sorted({job.size for job in trials if job.size})
    if len(sizes) < 2:
        return {}
    draws = np.full((marks.replicates + 1, len(names), len(sizes)), np.nan)
    for job, state in trials.items():
        if job.size and job.seed == 0:
            at = names.index(job.probe), sizes.index(job.size)
            draws[:, at[0], at[1]] = marks.of_words(state["head"] == marks.head)
    text = "words whose head is found, without punctuation, by sentences trained on"
    return {"curve": Variable(marks.estimate(draws), ("probe", "size"), text, "1", OURS)}


# --- heads ----------------------------------------------------------------------------------


def _heads(
    asking: ProbePlan, trials: dict[str, list[State]], found: ProbeAnswers
) -> dict[str, Variable]:
    """The weights of the probe on attention alone, as means over seeds."""
    if "attention" not in trials or found.spread is None:
        return {}
    shape = (len(DIRECTIONS), asking.model.shape.layers, asking.model.shape.heads)
    weights = np.stack([state["weight"] for state in trials["attention"]]).astype(np.float64)
    weight = np.asarray(weights.mean(0))  # [direction, unit]
    dims = ("layer", "head", "direction")

    def by_head(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.moveaxis(values.reshape(shape), 0, -1)  # [layer, head, direction]

    influence = "weight times spread: how far a head moves the scores of candidates apart"
    rows = {
        "head_weight": (weight, "weight of a head in the probe on attention", CLARK),
        "head_spread": (found.spread, "spread of attention between the candidates of a word", OURS),
        "head_influence": (weight * found.spread, influence, OURS),
    }
    variables = {
        name: Variable(by_head(values), dims, text, "1", source)
        for name, (values, text, source) in rows.items()
    }
    if asking.labels is not None:
        labels = np.array([[printable(x) for x in row] for row in asking.labels], object)
        variables["head_label"] = Variable(
            labels, ("layer", "head"), "what an atlas says of the head", "1", OURS
        )
    return variables


# --- hidden states --------------------------------------------------------------------------


def _structural(
    asking: ProbePlan, marks: TreeAccuracy, states: dict[int, State]
) -> dict[str, Variable]:
    """[layer] scores of the structural probe; NaN for layers that were not asked."""
    if not states:
        return {}
    rows: dict[str, tuple[str, Callable[[State], Float64]]] = {
        "structural_uuas": (
            "arcs of the minimum spanning tree of predicted distances",
            lambda s: marks.of_edges(s["edges"]),
        ),
        "structural_distance": (
            "Spearman's ρ of predicted and true distances, mean over lengths 5 to 50",
            lambda s: marks.by_length(s["distance"]),
        ),
        "structural_depth": (
            "Spearman's ρ of predicted and true depths, mean over lengths 5 to 50",
            lambda s: marks.by_length(s["depth"]),
        ),
        "structural_root": (
            "sentences whose least deep word is the root", lambda s: marks.of_sentences(s["root"])
        ),
    }  # fmt: skip
    found = {}
    for name, (text, of) in rows.items():
        draws = np.full((marks.replicates + 1, asking.model.shape.layers), np.nan)
        for layer, state in states.items():
            draws[:, layer] = of(state)
        found[name] = Variable(marks.estimate(draws), ("layer",), text, "1", HEWITT)
    return found


# --- what was done --------------------------------------------------------------------------


def _about(asking: ProbePlan, marks: TreeAccuracy) -> dict[str, Any]:
    """Attributes that a reader needs beside the numbers."""
    vocabulary, settings = asking.model.vocabulary, asking.settings
    constant = vocabulary.cls is None and vocabulary.sep is None
    about: dict[str, Any] = {
        **{f"{split.name}_sentences": _sentences(split.sentences) for split in asking.splits},
        "test_words": int(marks.asked.sum()), "not_asked": int((~marks.asked).sum()),
        "root": "a learned constant" if constant else "attention to special tokens",
        "lacking": " ".join(asking.lacking), "epochs": settings.epochs,
        "legacy_root_shift": int(settings.legacy_root_shift), "pieces": settings.pieces,
    }  # fmt: skip
    if asking.vectors is not None:
        forms = [form for s in marks.sentences for form in s.forms]
        about |= {
            "words": printable(asking.vectors.name), "words_dim": asking.vectors.dim,
            "words_unknown": asking.vectors.unknown(forms),
            "words_duplicates": asking.vectors.duplicates,
        }  # fmt: skip
    return about


def _sentences(sentences: Sequence[Any]) -> int:
    """How many there are; windows of one count once."""
    return len({s.example.document for s in sentences})
