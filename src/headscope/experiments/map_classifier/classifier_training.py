"""Trains the classifier, and scores it on maps and on models that it did not learn from.

Cross-validation over maps (stratified by label and model), and leaving one model out; the score is
macro-F1 with a bootstrap interval over maps. Beside the network stands a baseline, learned on the
same folds: a few rules on features of the map, without a network, which the network has to beat.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import confusion_matrix, f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier
from torch import nn
from transformers import PrinterCallback, Trainer, TrainingArguments

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_network import SIDE, Classifier, Seen, seen_bytes
from headscope.core.accumulators import generator
from headscope.experiments.map_classifier.made_maps import made_map

Labels = npt.NDArray[np.int64]
Fold = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # places of training, of test
EPOCHS, BATCH, RATE, DECAY = 30, 64, 3e-3, 0.05
SMOOTHING = 0.05  # of labels: annotators differ on one map in twelve
WARM_UP = 0.1  # share of the steps
MADE, MADE_EPOCHS = 8000, 6  # maps that it begins with, and passes over them
REPLICATES = 1000


@dataclass(frozen=True)
class Score:
    """How well the classes were told.

    predicted   [map] class, each by a classifier that had not seen it
    macro_f1, low, high   mean F1 of the classes, and its 95 % interval over maps
    f1          [class]
    confusion   [label, prediction] counts
    """

    predicted: Labels
    macro_f1: float
    low: float
    high: float
    f1: npt.NDArray[np.float64]
    confusion: npt.NDArray[np.int64]


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
    start   what it begins as, say `taught`; left as it is. None: anew
    """
    random = torch.Generator().manual_seed(seed)
    counts = torch.bincount(torch.from_numpy(labels), minlength=len(NAMES)).clamp_min(1)
    # Between what is rare and what is common: full weights call too much by the rarest name.
    rarity = (counts.sum() / counts / len(NAMES)).sqrt()
    with torch.random.fork_rng(), tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(seed)
        learner = _NetworkWithLoss(
            Classifier() if start is None else deepcopy(start).requires_grad_(True), rarity
        )
        trainer = Trainer(
            learner, _arguments(folder, seed=seed, epochs=epochs),
            data_collator=partial(_varied_batch, random=random),
            train_dataset=[
                {"pictures": picture, "labels": label}
                for picture, label in zip(torch.from_numpy(seen), labels.tolist(), strict=True)
            ],
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return learner.network.eval().requires_grad_(False)


def taught(*, seed: int = 0, maps: int = MADE, epochs: int = MADE_EPOCHS) -> Classifier:
    """A classifier that has learned from made maps alone, each class equally often."""
    rng = generator(seed, "made maps")
    labels = np.arange(maps) % len(NAMES)
    seen = np.concatenate([seen_bytes(made_map(NAMES[at], rng)[None]) for at in labels])
    return train(seen, labels, seed=seed, epochs=epochs)


class _NetworkWithLoss(nn.Module):
    """The network with its loss, as `Trainer` wants it."""

    def __init__(self, network: Classifier, rarity: torch.Tensor) -> None:
        super().__init__()
        self.network = network
        self.loss = nn.CrossEntropyLoss(weight=rarity, label_smoothing=SMOOTHING)

    def forward(self, pictures: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Loss and logits."""
        logits = self.network(pictures)
        return {"loss": self.loss(logits, labels), "logits": logits}


def _arguments(folder: str, *, seed: int, epochs: int) -> TrainingArguments:
    return TrainingArguments(
        folder, num_train_epochs=epochs, per_device_train_batch_size=BATCH, learning_rate=RATE,
        weight_decay=DECAY, lr_scheduler_type="cosine", warmup_steps=WARM_UP, seed=seed,
        use_cpu=True, save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True,
        remove_unused_columns=False, dataloader_pin_memory=False,
    )  # fmt: skip


def _varied_batch(
    maps: Sequence[Mapping[str, Any]], *, random: torch.Generator
) -> dict[str, torch.Tensor]:
    pictures = torch.stack([one["pictures"] for one in maps]).float() / 255
    labels = torch.tensor([one["labels"] for one in maps])
    return {"pictures": varied(pictures, random), "labels": labels}


def varied(pictures: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """The same maps a little otherwise, in ways that keep their class.

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
    """Stratified by label and model together, as far as each pair occurs often enough."""
    pairs = np.array([f"{label} {model}" for label, model in zip(labels, models, strict=True)])
    names, sizes = np.unique(pairs, return_counts=True)
    rare = set(names[sizes < count])
    strata = [str(labels[place]) if pair in rare else pair for place, pair in enumerate(pairs)]
    kfold: Any = StratifiedKFold(count, shuffle=True, random_state=seed)
    return [(np.asarray(fitted), np.asarray(held)) for fitted, held in kfold.split(strata, strata)]


def folds_over_models(models: Sequence[str]) -> list[Fold]:
    """Each model in turn is left out."""
    names = np.array(models)
    return [
        (np.flatnonzero(names != name), np.flatnonzero(names == name)) for name in np.unique(names)
    ]


def network_on(
    seen: Seen, labels: Labels, *, start: Classifier | None, seed: int, epochs: int = EPOCHS
) -> Callable[[Fold], Labels]:
    """What the network says of the maps that a fold holds out; `start` has seen none of them."""

    def run(fold: Fold) -> Labels:
        network = train(seen[fold[0]], labels[fold[0]], seed=seed, epochs=epochs, start=start)
        with torch.inference_mode():
            logits = network(torch.from_numpy(seen[fold[1]]).float() / 255)
        told: Labels = logits.argmax(-1).numpy()
        return told

    return run


def rules_on(seen: Seen, labels: Labels, *, seed: int) -> Callable[[Fold], Labels]:
    """What the baseline says of them."""

    def run(fold: Fold) -> Labels:
        return Rules(seed=seed).fit(seen[fold[0]], labels[fold[0]]).predict(seen[fold[1]])

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
    classes = list(range(len(NAMES)))
    draw = generator(seed, "macro-F1")
    drawn = [draw.integers(0, len(labels), len(labels)) for _ in range(REPLICATES)]
    there = sorted(set(labels.tolist()))  # a class that no map has says nothing

    def macro(places: npt.NDArray[np.int64]) -> float:
        f1 = f1_score(
            labels[places], predicted[places], labels=there, average="macro", zero_division=0
        )
        return float(f1)

    low, high = np.quantile([macro(places) for places in drawn], [0.025, 0.975])
    by_class = f1_score(labels, predicted, labels=classes, average=None, zero_division=0)
    return Score(
        predicted, macro(np.arange(len(labels))), float(low), float(high), np.asarray(by_class),
        confusion_matrix(labels, predicted, labels=classes),
    )  # fmt: skip


Floats = npt.NDArray[np.float64]


class Rules:
    """A tree of at most 12 rules on `features`; seed breaks ties."""

    def __init__(self, *, seed: int = 0) -> None:
        self.tree = DecisionTreeClassifier(
            max_leaf_nodes=12, min_samples_leaf=5, class_weight="balanced", random_state=seed
        )

    def fit(self, seen: Seen, labels: npt.NDArray[np.int64]) -> Rules:
        """Learn the rules from labelled maps."""
        self.tree.fit(features(seen), labels)
        return self

    def predict(self, seen: Seen) -> npt.NDArray[np.int64]:
        """[map] class."""
        return np.asarray(self.tree.predict(features(seen)), np.int64)


def features(seen: Seen) -> Floats:
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
            *bands, *ridge, ordered[:, 0] / total, ordered[:, :3].sum(1) / total,
            columns[:, 0] / total, columns[:, -1] / total, within / total,
            columns.std(1) / columns.mean(1).clip(1e-9), rows.std(1) / rows.mean(1).clip(1e-9),
            largest.mean((1, 2)), mean.mean((1, 2)),
        ],
        axis=1,
    )  # [map, feature]  # fmt: skip
