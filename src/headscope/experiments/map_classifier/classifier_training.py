"""Trains the bundled map classifier, scores it on unseen maps, and writes its card.

Cross-validation over maps (stratified by label and model), and leaving one model out; the score is
macro-F1 with a bootstrap interval over maps. Beside the network stands a baseline, learned on the
same folds: a few rules on features of the map, without a network, which the network has to beat.
"""

import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from transformers import PrinterCallback, Trainer, TrainingArguments

from headscope import __version__
from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_network import SIDE, Classifier, Seen, seen_bytes
from headscope.core.accumulators import Float64, Ints, generator
from headscope.core.whole_file import sha256_of
from headscope.errors import InputError
from headscope.experiments.map_classifier.labelled_maps import LabelledMaps
from headscope.experiments.map_classifier.made_maps import made_map

Labels = Ints
Features = npt.NDArray[np.floating]  # [map, feature]
Fold = tuple[Ints, Ints]  # places of training, of test
EPOCHS, BATCH, RATE, DECAY = 30, 64, 3e-3, 0.05
SMOOTHING = 0.05  # of labels: annotators differ on one map in twelve
WARM_UP = 0.1  # share of the steps
MADE, MADE_EPOCHS = 8000, 6  # maps that it begins with, and passes over them
REPLICATES = 1000


@dataclass(frozen=True)
class Score:
    """Scores of a classifier of maps.

    predicted   [map] class, each by a classifier that had not seen it
    macro_f1, low, high   mean F1 of the classes, and its 95 % interval over maps
    f1          [class]
    confusion   [label, prediction] counts
    """

    predicted: Labels
    macro_f1: float
    low: float
    high: float
    f1: Float64
    confusion: Ints


def train(
    seen: Seen,
    labels: Labels,
    *,
    seed: int = 0,
    epochs: int = EPOCHS,
    start: Classifier | None = None,
) -> Classifier:
    """A classifier of these maps; the same seed gives the same on one machine.

    seen    [map, 2, SIDE, SIDE]
    labels  [map] places in NAMES
    start   what it begins as, say `taught`; not changed. None: a new one
    """
    random = torch.Generator().manual_seed(seed)

    def varied_batch(places: Sequence[int]) -> dict[str, torch.Tensor]:
        pictures = torch.from_numpy(seen[places]).float() / 255
        return {"pictures": varied(pictures, random), "labels": torch.from_numpy(labels[places])}

    with torch.random.fork_rng(), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(seed)
        network = Classifier() if start is None else deepcopy(start).requires_grad_(True)
        learner = _NetworkWithLoss(network, rarity(labels))
        arguments = TrainingArguments(
            folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=BATCH,
            learning_rate=RATE,
            weight_decay=DECAY,
            lr_scheduler_type="cosine",
            warmup_steps=WARM_UP,
            seed=seed,
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(
            learner, arguments, data_collator=varied_batch, train_dataset=list(range(len(labels)))
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return network.eval().requires_grad_(False)


def taught(*, seed: int = 0, maps: int = MADE, epochs: int = MADE_EPOCHS) -> Classifier:
    """A classifier trained on synthetic maps only, each class equally often."""
    rng = generator(seed, "made maps")
    labels = np.arange(maps) % len(NAMES)
    seen = np.concatenate([seen_bytes(made_map(NAMES[at], rng)[None]) for at in labels])
    return train(seen, labels, seed=seed, epochs=epochs)


def rarity(labels: Labels) -> torch.Tensor:
    """[class] weight of a map; full weights would predict the rarest class too often."""
    counts = torch.bincount(torch.from_numpy(labels), minlength=len(NAMES)).clamp_min(1)
    return (counts.sum() / counts / len(NAMES)).sqrt()


class _NetworkWithLoss(nn.Module):
    def __init__(self, network: Classifier, weights: torch.Tensor) -> None:
        super().__init__()
        self.network = network
        self.loss = nn.CrossEntropyLoss(weight=weights, label_smoothing=SMOOTHING)

    def forward(self, pictures: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.network(pictures)
        return {"loss": self.loss(logits, labels), "logits": logits}


def varied(pictures: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """The same maps, slightly varied without a change of class.

    Half are turned by 180°: columns stay columns, the diagonal stays the diagonal, squares stay on
    it. Contrast varies, and up to an eighth of rows and columns is left out at each edge.
    """
    turned = torch.rand(len(pictures), generator=random) < 0.5
    changed = torch.where(turned[:, None, None, None], pictures.flip(2, 3), pictures)
    gamma = torch.empty(len(changed), 1, 1, 1).uniform_(0.7, 1.5, generator=random)
    changed = changed.clamp_min(1e-6) ** gamma
    side = changed.shape[-1]
    cut = [int(torch.randint(0, side // 8, (), generator=random)) for _ in range(2)]
    part = changed[:, :, cut[0] : side - cut[1], cut[0] : side - cut[1]]
    return nn.functional.interpolate(part, size=(side, side), mode="nearest-exact")


def folds_over_maps(labels: Labels, models: Sequence[str], *, count: int, seed: int) -> list[Fold]:
    """Folds stratified by label and model together, where each pair occurs often enough."""
    pairs = np.array([f"{label} {model}" for label, model in zip(labels, models, strict=True)])
    names, sizes = np.unique(pairs, return_counts=True)
    rare = set(names[sizes < count])
    strata = [str(labels[place]) if pair in rare else pair for place, pair in enumerate(pairs)]
    kfold: Any = StratifiedKFold(count, shuffle=True, random_state=seed)
    return [(np.asarray(fitted), np.asarray(held)) for fitted, held in kfold.split(strata, strata)]


def folds_over_models(models: Sequence[str]) -> list[Fold]:
    """Folds that leave out one model each."""
    out = [np.array(models) == name for name in sorted(set(models))]
    return [(np.flatnonzero(~held), np.flatnonzero(held)) for held in out]


def folds_of(labelled: LabelledMaps, *, seed: int) -> dict[str, list[Fold]]:
    """Folds by name: over maps, and over models where there are several."""
    labels, models = labelled.labels, labelled.origins
    held = {"Held-out maps": folds_over_maps(labels, models, count=FOLDS, seed=seed)}
    return held | ({"Held-out models": folds_over_models(models)} if len(set(models)) > 1 else {})


def network_on(
    seen: Seen, labels: Labels, *, start: Classifier | None, seed: int, epochs: int = EPOCHS
) -> Callable[[Fold], Labels]:
    """Predictions of the network for a fold's held-out maps; `start` has seen none of them."""

    def run(fold: Fold) -> Labels:
        network = train(seen[fold[0]], labels[fold[0]], seed=seed, epochs=epochs, start=start)
        with torch.inference_mode():
            logits = network(torch.from_numpy(seen[fold[1]]).float() / 255)
        predicted: Labels = logits.argmax(-1).numpy()
        return predicted

    return run


def rules_on(known: Features, labels: Labels, *, seed: int) -> Callable[[Fold], Labels]:
    """Predictions of the baseline: a decision tree of at most 12 rules; the seed breaks ties.

    known  [map, feature] what is known of the maps
    """

    def run(fold: Fold) -> Labels:
        tree = DecisionTreeClassifier(
            max_leaf_nodes=12, min_samples_leaf=5, class_weight="balanced", random_state=seed
        )
        tree.fit(known[fold[0]], labels[fold[0]])
        return np.asarray(tree.predict(known[fold[1]]), np.int64)

    return run


def cross_validated(
    labels: Labels, folds: Sequence[Fold], run: Callable[[Fold], Labels], *, seed: int
) -> Score:
    """The score of predictions that were each made without the map's label."""
    predicted = np.full(len(labels), -1)
    for fold in folds:
        predicted[fold[1]] = run(fold)
    return score(labels, predicted, seed=seed)


def score(labels: Labels, predicted: Labels, *, seed: int) -> Score:
    """Macro-F1, its interval, F1 by class and the confusion matrix."""
    draw, count, there = generator(seed, "macro-F1"), len(labels), sorted(set(labels.tolist()))

    def macro(confusion: Labels) -> float:
        return float(f1_by_class(confusion)[there].mean())  # a class that no map has says nothing

    drawn = (draw.integers(0, count, count) for _ in range(REPLICATES))
    each = [macro(confusion_of(labels[at], predicted[at])) for at in drawn]
    low, high = np.quantile(each, [0.025, 0.975])
    whole = confusion_of(labels, predicted)
    return Score(predicted, macro(whole), float(low), float(high), f1_by_class(whole), whole)


def confusion_of(labels: Labels, predicted: Labels) -> Labels:
    """[class, predicted class] counts of maps."""
    count = len(NAMES)
    return np.bincount(count * labels + predicted, minlength=count**2).reshape(count, count)


def f1_by_class(confusion: Labels) -> Float64:
    """[class] F1: 2 hits / (maps of the class + maps predicted as it); 0 where there is neither."""
    both = confusion.sum(0) + confusion.sum(1)
    return np.asarray(2 * np.diagonal(confusion) / np.maximum(both, 1))


def features(seen: Seen) -> Float64:
    """[map, feature] of the maps as the classifier sees them: [map, 2, SIDE, SIDE].

    Shares of the pooled weight: on the diagonal and beside it, in the largest column, in the three
    largest, in the first and in the last; within halves of the map; how unequal columns and rows
    are; how much is dark at all.
    """
    largest, mean = (seen[:, place].astype(np.float64) / 255 for place in (0, 1))
    total = np.maximum(mean.sum((1, 2)), 1e-9)
    away = np.abs(np.subtract.outer(np.arange(SIDE), np.arange(SIDE)))
    columns, rows = mean.sum(1), mean.sum(2)  # [map, column], [map, row]
    ordered = -np.sort(-columns, axis=1)
    half = SIDE // 2
    within = mean[:, :half, :half].sum((1, 2)) + mean[:, half:, half:].sum((1, 2))
    bands = [(mean * (away <= width)).sum((1, 2)) / total for width in (0, 1, 3)]
    ridge = [(largest * (away <= width)).sum((1, 2)) / (away <= width).sum() for width in (0, 1)]
    return np.stack(
        [
            *bands,
            *ridge,
            ordered[:, 0] / total,
            ordered[:, :3].sum(1) / total,
            columns[:, 0] / total,
            columns[:, -1] / total,
            within / total,
            columns.std(1) / columns.mean(1).clip(1e-9),
            rows.std(1) / rows.mean(1).clip(1e-9),
            largest.mean((1, 2)),
            mean.mean((1, 2)),
        ],
        axis=1,
    )  # [map, feature]


# --- the bundled classifier -------------------------------------------------------------------

FOLDS = 5  # and at least this number of maps of a class, so that every fold holds one out
Scores = dict[str, dict[str, Score]]  # classifier → what was held out → score


def trained(
    labelled: LabelledMaps,
    *,
    epochs: int | None = None,
    seed: int = 0,
    scored: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[Classifier, dict[str, Any], Scores]:
    """A network trained on all maps; its card; and its cross-validated scores.

    scored  False leaves cross-validation out
    tell    is given a sentence when a step begins
    raises  InputError if there are fewer than FOLDS maps of a class
    """
    seen, labels = labelled.seen, labelled.labels
    count = counted(labels)
    epochs = epochs or EPOCHS
    tell(f"learning from {MADE} made maps")
    start = taught(seed=seed, maps=MADE)
    scores = _scores(labelled, start, epochs=epochs, seed=seed, tell=tell) if scored else {}
    tell(f"learning from all {len(labelled)} labelled maps")
    network = train(seen, labels, seed=seed, epochs=epochs, start=start)
    card = {
        "maps": len(labelled),
        "maps_by_class": dict(count),
        "maps_by_model": dict(Counter(labelled.models)),
        "maps_sha256": sha256_of((seen.tobytes(), labels.tobytes())),
        "made_maps": MADE,
        "epochs": epochs,
        "seed": seed,
        "headscope_version": __version__,
        "scores": {
            name: {held_out: numbers_of(one) for held_out, one in of_name.items()}
            for name, of_name in scores.items()
        },
    }
    return network, card, scores


def counted(labels: Labels) -> Counter[str]:
    """Number of maps by class; raises InputError if a class has fewer than FOLDS."""
    count = Counter(NAMES[label] for label in labels.tolist())
    if few := [name for name in NAMES if count[name] < FOLDS]:
        raise InputError(
            f"found {', '.join(f'{count[name]} {name}' for name in few)} maps; wanted {FOLDS} or "
            "more of each class: label more, or learn with the bundled maps"
        )
    return count


def _scores(
    labelled: LabelledMaps,
    start: Classifier,
    *,
    epochs: int,
    seed: int,
    tell: Callable[[str], None],
) -> Scores:
    seen, labels = labelled.seen, labelled.labels
    held = folds_of(labelled, seed=seed)
    evenly = np.array([row.get("drawn") == "evenly" for row in labelled.provenance])
    runs = {
        "network": network_on(seen, labels, start=start, seed=seed, epochs=epochs),
        "rules": rules_on(features(seen), labels, seed=seed),
    }
    scores: Scores = {name: {} for name in runs}
    for name, what in itertools.product(runs, held):
        tell(f"{what.lower()}: {len(held[what])} times the {name}")
        whole = cross_validated(labels, held[what], runs[name], seed=seed)
        scores[name][what] = whole
        if evenly.any() and not evenly.all():
            part = score(labels[evenly], whole.predicted[evenly], seed=seed)
            scores[name][f"{what} that were drawn evenly"] = part
    return scores


def numbers_of(score: Score) -> dict[str, Any]:
    """The entries of a card for a score."""
    return {
        "macro_f1": round(score.macro_f1, 4),
        "ci_low": round(score.low, 4),
        "ci_high": round(score.high, 4),
        "f1": dict(zip(NAMES, np.round(score.f1, 4).tolist(), strict=True)),
        "confusion": score.confusion.tolist(),
    }
