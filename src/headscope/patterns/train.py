"""How well is the class of a map told, on maps and on models that were not learned from?

Cross-validation over maps (stratified by label and model), and leaving one model out; the score is
macro-F1 with a bootstrap interval over maps. Beside the network stands a baseline on a few features
of the map, learned on the same folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import confusion_matrix, f1_score
from sklearn.model_selection import StratifiedKFold
from torch import nn

from headscope.accumulate import generator
from headscope.patterns.classes import NAMES
from headscope.patterns.network import Classifier
from headscope.patterns.resize import Seen
from headscope.patterns.rules import Rules

Labels = npt.NDArray[np.int64]
Fold = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # places of training, of test
EPOCHS, BATCH, RATE = 60, 64, 3e-3
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


def train(seen: Seen, labels: Labels, *, seed: int = 0, epochs: int = EPOCHS) -> Classifier:
    """A classifier of these maps; the same seed gives the same on one machine.

    seen    [map, 2, SIDE, SIDE]
    labels  [map] places in NAMES
    """
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    network = Classifier()
    pictures, wanted = torch.from_numpy(seen).float() / 255, torch.from_numpy(labels)
    counts = torch.bincount(wanted, minlength=len(NAMES)).clamp_min(1)
    # Between what is rare and what is common: full weights call too much by the rarest name.
    rarity = (counts.sum() / counts / len(NAMES)).sqrt()
    loss = nn.CrossEntropyLoss(weight=rarity, label_smoothing=0.05)
    steps = -(-len(pictures) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.05)
    pace = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=epochs * steps)
    network.train()
    for _ in range(epochs):
        order = torch.randperm(len(pictures), generator=random)
        for part in torch.split(order, BATCH):
            logits = network(varied(pictures[part], random))
            optimizer.zero_grad()
            loss(logits, wanted[part]).backward()
            optimizer.step()
            pace.step()
    return network.eval()


def varied(pictures: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """The same maps a little otherwise, in ways that keep their class.

    Half are turned by 180°: columns stay columns, the diagonal stays the diagonal, squares stay on
    it. Contrast varies, and up to three rows and columns at the edges are left out.
    """
    turned = torch.rand(len(pictures), generator=random) < 0.5
    found = torch.where(turned[:, None, None, None], pictures.flip(2, 3), pictures)
    gamma = torch.empty(len(found), 1, 1, 1).uniform_(0.7, 1.5, generator=random)
    found = found.clamp_min(1e-6) ** gamma
    cut = [int(torch.randint(0, 4, (), generator=random)) for _ in range(2)]
    side = found.shape[-1]
    part = found[:, :, cut[0] : side - cut[1], cut[0] : side - cut[1]]
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
    seen: Seen, labels: Labels, *, seed: int, epochs: int = EPOCHS
) -> Callable[[Fold], Labels]:
    """What the network says of the maps that a fold holds out."""

    def run(fold: Fold) -> Labels:
        network = train(seen[fold[0]], labels[fold[0]], seed=seed, epochs=epochs)
        with torch.inference_mode():
            logits = network(torch.from_numpy(seen[fold[1]]).float() / 255)
        found: Labels = logits.argmax(-1).numpy()
        return found

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
        found = f1_score(
            labels[places], predicted[places], labels=there, average="macro", zero_division=0
        )
        return float(found)

    low, high = np.quantile([macro(places) for places in drawn], [0.025, 0.975])
    by_class = f1_score(labels, predicted, labels=classes, average=None, zero_division=0)
    return Score(
        predicted, macro(np.arange(len(labels))), float(low), float(high), np.asarray(by_class),
        confusion_matrix(labels, predicted, labels=classes),
    )  # fmt: skip
