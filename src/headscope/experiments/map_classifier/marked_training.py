"""Trains the classifier that knows marked columns, and scores it on unseen maps.

Of a training set, a fifth after the other is left out of some of the networks. What these say of
the maps that they have not seen sets the temperature and the threshold; so both, like everything
else, are chosen without any label of the maps that a score is over.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from torch import nn

from headscope import __version__
from headscope.analyses.patterns.classes import NAMES, SPECIAL
from headscope.analyses.patterns.map_features import Features
from headscope.analyses.patterns.measure_marked import MarkedClassifier
from headscope.core.accumulators import Bools, Float64, Ints, generator
from headscope.core.whole_file import write_whole
from headscope.experiments.map_classifier.annotation_session import agreement
from headscope.experiments.map_classifier.classifier_training import (
    Fold,
    Scores,
    counted,
    cross_validated,
    folds_of,
    numbers_of,
    rarity,
    rules_on,
    score,
)
from headscope.experiments.map_classifier.labelled_maps import LabelledMaps, MarkedMap

FOLDS = 5  # of the training set, each left out of two networks
MEMBERS = 2 * FOLDS
STEPS, BATCH, RATE, DECAY = 600, 128, 4e-3, 0.02
DROPPED, NOISE = 0.25, 0.1  # of hidden values; in standard deviations of a feature
SMOOTHING = 0.05  # of labels: annotators differ on one map in ten
REAL = 0.5  # share of a batch that is maps as they are; the others are varied
RIGHT = 0.9  # of the maps that get a class: as often as two annotators agree
HELD_OUT = "held_out.npz"  # probabilities of maps that were held out, with their labels
BINS = 10  # of probabilities, for the calibration error


def varied(one: MarkedMap, rng: np.random.Generator) -> MarkedMap:
    """The same map, slightly varied without a change of class.

    Some are turned by 180°, some lose up to a third of the tokens that are not special, of some no
    token sees a later one. Rows add up to what they did, or to 1 where tokens are left out.
    """
    weights, kinds, second = one.map, one.kinds, one.second
    if kinds is None:
        return one
    causal = np.triu(weights, 1).sum() < 1e-4 * len(weights)
    if rng.random() < 0.5 and not causal:
        weights, kinds = weights[::-1, ::-1], kinds[::-1]
        second = len(kinds) - second if second else 0
    if rng.random() < 0.6:
        kept = (rng.random(len(kinds)) > rng.uniform(0.05, 0.35)) | (kinds == SPECIAL)
        first = int(kept[:second].sum())
        if kept.sum() >= 10 and (not second or 3 <= first <= kept.sum() - 3):
            weights, kinds, second = _sharing(weights[kept][:, kept]), kinds[kept], first
    if rng.random() < 0.4:
        weights = _sharing(np.tril(weights))
    return MarkedMap(np.ascontiguousarray(weights, np.float32), kinds, second)


def _sharing(weights: Features) -> Features:
    rows: Features = weights / np.maximum(weights.sum(1, keepdims=True), 1e-9)
    return rows


def versions(maps: Sequence[MarkedMap], *, count: int = 6, seed: int = 0) -> Features:
    """[version, map, feature]: first the maps themselves, then variations."""
    rng = generator(seed, "varied maps")
    each = [[one.features() for one in maps]]
    each += [[varied(one, rng).features() for one in maps] for _ in range(count)]
    return np.array(each, np.float32)


def train(
    features: Features, labels: Ints, *, seed: int = 0, steps: int = STEPS
) -> MarkedClassifier:
    """A classifier of these maps, with temperature and threshold set on held-out ones.

    features  [version, map, feature] of `versions`
    labels  [map] places in NAMES
    """
    unseen = _unseen(labels, seed)  # [member, map]
    network = MarkedClassifier(MEMBERS)
    real = torch.from_numpy(features[0])
    network.center.copy_(real.mean(0))
    network.spread.copy_(real.std(0) + 1e-3)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        _fit(network, network.scaled(torch.from_numpy(features)), labels, ~unseen, steps)
    network.eval().requires_grad_(False)
    _calibrate(network, features[0], labels, unseen)
    return network


def _unseen(labels: Ints, seed: int) -> Bools:
    """[member, map] maps that a network of the ensemble is not trained on."""
    unseen = np.zeros((MEMBERS, len(labels)), bool)
    fewest = int(np.bincount(labels, minlength=len(NAMES)).min())
    if fewest >= FOLDS:
        kfold = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        for fold, (_, out) in enumerate(kfold.split(labels, labels)):
            unseen[fold::FOLDS, out] = True
    else:
        for fold in range(FOLDS):
            unseen[fold::FOLDS, fold::FOLDS] = True
    return unseen


def _fit(
    network: MarkedClassifier, scaled: torch.Tensor, labels: Ints, allowed: Bools, steps: int
) -> None:
    for weight in network.weights:
        nn.init.uniform_(weight, -1, 1).data.mul_((6 / sum(weight.shape[1:])) ** 0.5)
    weights = rarity(labels)
    groups = [
        {"params": list(network.weights), "weight_decay": DECAY},
        {"params": list(network.biases), "weight_decay": 0.0},
    ]
    learner = torch.optim.AdamW(groups, lr=RATE)
    rate = torch.optim.lr_scheduler.OneCycleLR(
        learner, RATE, total_steps=max(steps, 20), pct_start=0.1
    )
    odds, classes = torch.from_numpy(allowed).double(), torch.from_numpy(labels)
    for _ in range(steps):
        places = torch.multinomial(odds, BATCH, replacement=True)  # [member, example]
        version = torch.randint(0, len(scaled), places.shape)
        version[torch.rand(places.shape) < REAL] = 0
        batch = scaled[version, places]
        logits = network.logits(batch + NOISE * torch.randn_like(batch), dropped=DROPPED)
        loss = len(places) * nn.functional.cross_entropy(
            logits.flatten(0, 1),
            classes[places].flatten(),
            weight=weights,
            label_smoothing=SMOOTHING,
        )
        learner.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step()
        rate.step()


def _calibrate(network: MarkedClassifier, features: Features, labels: Ints, unseen: Bools) -> None:
    """Set temperature and threshold from the networks' predictions for unseen maps."""
    with torch.inference_mode():
        logits = network.logits(network.scaled(torch.from_numpy(features)))
        each = logits.double().softmax(-1).numpy()  # [member, map, class]
    weights = unseen[..., None]
    mean = np.log(((each * weights).sum(0) / weights.sum(0)).clip(1e-9))  # [map, class]
    places = np.arange(len(labels))

    def surprise(temperature: float) -> float:
        return float(-np.log(softmax(mean / temperature, -1)[places, labels].clip(1e-9)).mean())

    temperature = minimize_scalar(surprise, bounds=(0.2, 5), method="bounded").x
    network.temperature.fill_(float(temperature))
    network.threshold.fill_(threshold(softmax(mean / temperature, -1), labels))


def threshold(probabilities: Float64, labels: Ints) -> float:
    """The lowest probability above which predictions are right as often as annotators agree.

    probabilities  [map, class] of maps that were not learned from
    """
    sure = probabilities.max(-1)
    order = np.argsort(-sure, kind="stable")
    right = (probabilities.argmax(-1) == labels)[order]
    shares = np.cumsum(right) / np.arange(1, len(right) + 1)
    enough = np.flatnonzero(shares >= RIGHT)
    return float(sure[order[enough[-1]]]) if len(enough) else 1.0


def calibration_error(probabilities: Float64, labels: Ints) -> float:
    """Expected calibration error (Guo et al. 2017) of the likeliest class, in BINS bins."""
    sure, right = probabilities.max(-1), probabilities.argmax(-1) == labels
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    each = [(bins == at) for at in range(BINS)]
    return float(sum(abs(right[here].sum() - sure[here].sum()) for here in each) / len(labels))


def held_out(
    features: Features, labels: Ints, folds: Sequence[Fold], *, seed: int = 0, steps: int = STEPS
) -> tuple[Float64, Bools]:
    """[map, class] probabilities from networks that saw neither map nor label; [map] confident.

    folds  (training, test); what a fold leaves out is used for nothing of its network
    """
    probabilities = np.full((len(labels), len(NAMES)), np.nan)
    sure = np.zeros(len(labels), bool)
    for fitted, out in folds:
        network = train(features[:, fitted], labels[fitted], seed=seed, steps=steps)
        probabilities[out] = network.classify(features[0][out])
        sure[out] = probabilities[out].max(-1) >= float(network.threshold)
    return probabilities, sure


HeldOut = dict[str, Float64]  # what was held out -> [map, class] probabilities


def write_held_out(folder: Path, labels: Ints, held_out: HeldOut) -> None:
    """Write the labels, and what networks say of maps that they did not learn from, as arrays."""
    arrays: dict[str, Any] = {"labels": labels}
    arrays |= {n.lower().replace("-", "_").replace(" ", "_"): p for n, p in held_out.items()}

    def write(path: str) -> None:
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)

    write_whole(folder / HELD_OUT, write)


def trained(
    labelled: LabelledMaps,
    *,
    epochs: int | None = None,
    seed: int = 0,
    scored: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[MarkedClassifier, dict[str, Any], Scores, HeldOut]:
    """A classifier trained on all maps; its card, its scores, and the held-out predictions.

    scored  False leaves cross-validation out
    tell    is given a sentence when a step begins
    raises  InputError if there are too few maps of a class, or tokens are not known
    """
    labels = labelled.labels
    count = counted(labels)
    steps = STEPS if epochs is None else epochs * -(-len(labels) // BATCH)
    features = versions(labelled.maps, seed=seed)
    card: dict[str, Any] = {
        "columns": "special",
        "maps": len(labelled),
        "maps_by_class": dict(count),
        "maps_by_model": dict(Counter(labelled.models)),
        "steps": steps,
        "seed": seed,
        "headscope_version": __version__,
        **_annotators(labelled),
    }
    scores: Scores = {}
    held_out_scores: HeldOut = {}
    if scored:
        scores, held_out_scores, card["scores"] = _scored(labelled, features, seed, steps, tell)
    else:
        card["scores"] = {}
    tell(f"learning from all {len(labelled)} labelled maps")
    network = train(features, labels, seed=seed, steps=steps)
    card["temperature"], card["threshold"] = float(network.temperature), float(network.threshold)
    return network, card, scores, held_out_scores


def _scored(
    labelled: LabelledMaps, features: Features, seed: int, steps: int, tell: Callable[[str], None]
) -> tuple[Scores, HeldOut, dict[str, Any]]:
    labels = labelled.labels
    rules = rules_on(features[0], labels, seed=seed)
    scores: Scores = {"network": {}, "rules": {}}
    probabilities: HeldOut = {}
    numbers: dict[str, Any] = {"network": {}, "rules": {}}
    for what, folds in folds_of(labelled, seed=seed).items():
        tell(f"{what.lower()}: {len(folds)} times")
        predicted, sure = held_out(features, labels, folds, seed=seed, steps=steps)
        probabilities[what] = predicted
        scores["network"][what] = score(labels, predicted.argmax(-1), seed=seed)
        scores["rules"][what] = cross_validated(labels, folds, rules, seed=seed)
        numbers["rules"][what] = numbers_of(scores["rules"][what])
        numbers["network"][what] = numbers_of(scores["network"][what]) | {
            "calibration_error": round(calibration_error(predicted, labels), 4),
            "unsure": round(float(1 - sure.mean()), 4),
        }
        if sure.any():
            right = labels[sure], predicted[sure].argmax(-1)
            numbers["network"][what] |= {
                "right_where_sure": round(float((right[0] == right[1]).mean()), 4),
                "macro_f1_where_sure": round(float(f1_score(*right, average="macro")), 4),
            }
    return scores, probabilities, numbers


def _annotators(labelled: LabelledMaps) -> dict[str, Any]:
    """Agreement of the first two annotators, where there are two."""
    first, second = (
        {at: row[name] for at, row in enumerate(labelled.provenance) if row.get(name)}
        for name in ("first", "second")
    )
    agreed = agreement(first, second)
    if not agreed.count:
        return {}
    both = sorted(first.keys() & second.keys())
    said = [first[at] for at in both], [second[at] for at in both]
    return {
        "annotators": {
            "maps": agreed.count,
            "kappa": round(agreed.kappa, 4),
            "macro_f1": round(float(f1_score(*said, average="macro")), 4),
        }
    }
