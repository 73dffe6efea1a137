"""Makes the classifier that headscope brings, and its card."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from headscope import __version__
from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_network import Classifier
from headscope.errors import InputError
from headscope.experiments.map_classifier.classifier_training import (
    EPOCHS,
    MADE,
    Fold,
    Score,
    cross_validated,
    folds_over_maps,
    folds_over_models,
    network_on,
    rules_on,
    score,
    taught,
    train,
)
from headscope.experiments.map_classifier.labelled_maps import LabelledMaps

FOLDS = 5
LEAST = FOLDS  # maps of a class, so that every fold holds one out
EVENLY = "evenly"  # how maps were drawn, in the provenance of the bundled ones
Scores = dict[str, dict[str, Score]]  # classifier → what was held out → score


def trained(
    labelled: LabelledMaps,
    *,
    epochs: int | None = None,
    seed: int = 0,
    scored: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[Classifier, dict[str, Any], Scores]:
    """A network that learned from all maps; its card; and how well such a network tells others.

    scored  False leaves cross-validation out
    tell    is given a sentence when a step begins
    raises  InputError if there are fewer than LEAST maps of a class
    """
    count = Counter(NAMES[label] for label in labelled.labels.tolist())
    if few := [name for name in NAMES if count[name] < LEAST]:
        raise InputError(
            f"found {', '.join(f'{count[name]} {name}' for name in few)} maps; wanted {LEAST} or "
            "more of each class: label more, or learn with the bundled maps"
        )
    epochs = epochs or EPOCHS
    tell(f"learning from {MADE} made maps")
    start = taught(seed=seed, maps=MADE)
    scores = _scores(labelled, start, epochs=epochs, seed=seed, tell=tell) if scored else {}
    tell(f"learning from all {len(labelled)} labelled maps")
    network = train(labelled.seen, labelled.labels, seed=seed, epochs=epochs, start=start)
    card = {
        "maps": len(labelled), "maps_by_class": dict(count),
        "maps_by_model": dict(Counter(labelled.models)),
        "maps_sha256": hashlib.sha256(
            labelled.seen.tobytes() + labelled.labels.tobytes()
        ).hexdigest(),
        "made_maps": MADE, "epochs": epochs, "seed": seed, "headscope_version": __version__,
        "scores": {
            name: {folds: _numbers(by_fold) for folds, by_fold in by_folds.items()}
            for name, by_folds in scores.items()
        },
    }  # fmt: skip
    return network, card, scores


def _scores(
    labelled: LabelledMaps,
    start: Classifier,
    *,
    epochs: int,
    seed: int,
    tell: Callable[[str], None],
) -> Scores:
    seen, labels = labelled.seen, labelled.labels
    held: dict[str, list[Fold]] = {
        "Held-out maps": folds_over_maps(labels, labelled.models, count=FOLDS, seed=seed)
    }
    if len(set(labelled.models)) > 1:
        held["Held-out models"] = folds_over_models(labelled.models)
    evenly = np.array([row.get("drawn") == EVENLY for row in labelled.provenance])
    runs = {
        "network": network_on(seen, labels, start=start, seed=seed, epochs=epochs),
        "rules": rules_on(seen, labels, seed=seed),
    }
    scores: Scores = {}
    for name, run in runs.items():
        for what, folds in held.items():
            tell(f"{what.lower()}: {len(folds)} times the {name}")
            whole = cross_validated(labels, folds, run, seed=seed)
            scores.setdefault(name, {})[what] = whole
            if evenly.any() and not evenly.all():
                part = score(labels[evenly], whole.predicted[evenly], seed=seed)
                scores[name][f"{what} that were drawn evenly"] = part
    return scores


def _numbers(score: Score) -> dict[str, Any]:
    return {
        "macro_f1": round(score.macro_f1, 4), "ci_low": round(score.low, 4),
        "ci_high": round(score.high, 4),
        "f1": dict(zip(NAMES, np.round(score.f1, 4).tolist(), strict=True)),
        "confusion": score.confusion.tolist(),
    }  # fmt: skip
