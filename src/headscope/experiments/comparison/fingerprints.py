"""Fingerprints of heads: what each one does, in numbers that two models of any shape share.

A fingerprint holds the share of what the head gathers that each rule explains (group `explained`),
and its scores on made inputs less their null (group `circuits`). Rules that name the same keys for
other kinds of queries ("…, by marks") count as one. It says nothing of depth.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.analyses.explained.rules import RESTS
from headscope.analyses.explained.sentences import BY
from headscope.core.accumulators import Bools, Float64, Ints
from headscope.core.intervals import Estimate
from headscope.core.results import estimate, group, shape

RULES, SCORES = "explained", "circuits"  # the groups that hold them
PATTERNS = ("previous_token", "duplicate_token", "induction")
OTHERS = ("copied_attention", "retrieval")  # shares of 1, which need no null of their own


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of some heads.

    places       [unit, 2] place of the layer, and head, from 0
    rules        [unit, rule] share of what the head gathers that the rule explains
    scores       [unit, score] share of attention, less its null
    rule_names   all rules that were tried; () without the group `explained`
    score_names  () without the group `circuits`
    """

    places: Ints
    rules: Estimate
    scores: Estimate
    rule_names: tuple[str, ...]
    score_names: tuple[str, ...]

    def has(self, rules: Sequence[str], scores: Sequence[str]) -> bool:
        """Whether it has all these rules and scores."""
        return {*rules} <= {*self.rule_names} and {*scores} <= {*self.score_names}

    def of(self, rules: Sequence[str], scores: Sequence[str]) -> Fingerprints:
        """These rules and scores of the heads that have all of them."""
        shares = _columns(self.rules, self.rule_names, rules)
        numbers = _columns(self.scores, self.score_names, scores)
        both = np.concatenate([shares.value, numbers.value], 1)
        whole = np.isfinite(both).all(1)
        return Fingerprints(
            self.places[whole],
            shares.map(lambda end: end[whole]),
            numbers.map(lambda end: end[whole]),
            tuple(rules),
            tuple(scores),
        )


def fingerprints(trees: Iterable[xr.DataTree], *, untrained: bool = False) -> Fingerprints:
    """The fingerprints of the heads of one model, from its runs; NaN where a run lacks a head.

    untrained  the runs are of a network of a control: a share without an interval counts as exact.
               Of a model it may then be anything from 0 to 1
    """
    trees = list(trees)
    layers, heads = shape(trees[0])
    places = np.stack(np.divmod(np.arange(layers * heads), heads), -1)
    rules, rule_names = _nothing(layers * heads), tuple[str, ...]()
    scores, score_names = _nothing(layers * heads), tuple[str, ...]()
    for tree in trees:
        if (explained := group(tree, RULES)) is not None and "rule_share" in explained:
            rules, rule_names = _of_rules(explained)
        if (circuits := group(tree, SCORES)) is not None:
            scores, score_names = _of_scores(circuits)
    known = [_with_ends(one, exact=untrained) for one in (rules, scores)]
    return Fingerprints(places, *known, rule_names, score_names)


def distances(one: Fingerprints, other: Fingerprints) -> Estimate:
    """[unit, unit] how far heads of two models do different things, from 0.

    Of rules it is the total variation between the shares, from 0 to 1; of scores the sum of
    differences. The ends are the least and the most that the intervals of all shares allow. What
    no rule explains counts as the same in both heads for the value and for the lower end, and as
    different for the upper end: nobody knows which it is.
    """
    every = [_from_head(one, at, other) for at in range(len(one.places))]
    ends = [np.stack(end) for end in zip(*every, strict=True)] if every else []
    if not ends:
        ends = [np.empty((0, len(other.places)))] * 3
    return Estimate(*ends)


def _from_head(one: Fingerprints, at: int, other: Fingerprints) -> tuple[Float64, Float64, Float64]:
    """[unit of the other model] value, low and high end for one head."""
    value = low = high = np.zeros(len(other.places))
    if one.rule_names:
        mine, theirs = one.rules.map(lambda end: end[at]), other.rules
        left = 1 - mine.value.sum(), 1 - theirs.value.sum(1)
        most = 1 - mine.low.sum(), 1 - theirs.low.sum(1)  # that rules may leave
        value = 1 - _shared(mine.value, theirs.value) - np.minimum(*left)
        low = 1 - _shared(mine.high, theirs.high) - np.minimum(*most)
        high = 1 - _shared(mine.low, theirs.low)
    value, low = np.maximum(value, 0), np.maximum(low, 0)
    mine, theirs = one.scores.map(lambda end: end[at]), other.scores
    apart = np.maximum(mine.low - theirs.high, theirs.low - mine.high)
    farthest = np.maximum(mine.high - theirs.low, theirs.high - mine.low)
    return (
        value + np.abs(mine.value - theirs.value).sum(1),
        low + np.maximum(apart, 0).sum(1),
        high + farthest.sum(1),
    )


def _shared(mine: Float64, theirs: Float64) -> Float64:
    return np.asarray(np.minimum(mine, theirs).sum(1))


def _of_rules(data: xr.Dataset) -> tuple[Estimate, tuple[str, ...]]:
    """[unit, rule] from the slots of each head, and the rules; a rest counts as one."""
    tried = [name.partition(BY)[0] for name in json.loads(data.attrs["rules"])]
    names = list(dict.fromkeys(tried))
    column = np.array([names.index(name) for name in tried])
    chosen = data.sel(explains="gathering")
    rest = chosen["rest"].values.ravel()  # [unit]
    numbers = chosen["rule"].values.reshape(len(rest), -1)  # [unit, slot]
    rests = np.array([names.index(name) for name in RESTS])[np.maximum(rest, 0)]
    columns = np.concatenate([column[np.maximum(numbers, 0)], rests[:, None]], 1)
    used = np.concatenate([numbers >= 0, (rest >= 0)[:, None]], 1)
    shares = estimate(data, "rule_share").map(lambda end: end.reshape(len(rest), -1))

    def by_rule(end: Float64) -> Float64:
        made = np.zeros((len(rest), len(names)))
        np.add.at(made, (np.arange(len(rest))[:, None], columns), np.where(used, end, 0))
        made[rest < 0] = np.nan
        return made

    return shares.map(by_rule), tuple(names)


def _of_scores(data: xr.Dataset) -> tuple[Estimate, tuple[str, ...]]:
    """[unit, score] and their names; what lies below its null is 0."""
    made, names = list[Estimate](), [*PATTERNS]
    for pattern in PATTERNS:
        score, null = (estimate(data, name, circuit=pattern) for name in ("score", "null"))
        gain = (score.value - null.value, score.low - null.high, score.high - null.low)
        made.append(Estimate(*(np.maximum(end, 0) for end in gain)))
    for name in OTHERS:
        if name in data:
            made.append(estimate(data, name))
            names.append(name)
    ends = (np.stack([getattr(one, end).ravel() for one in made], -1) for end in _ENDS)
    return Estimate(*ends), tuple(names)


_ENDS = ("value", "low", "high")


def _with_ends(one: Estimate, *, exact: bool) -> Estimate:
    """Ends where there are none: the value itself, or 0 and 1."""
    none: Bools = np.isfinite(one.value) & ~(np.isfinite(one.low) & np.isfinite(one.high))
    low, high = (one.value, one.value) if exact else (0.0, np.maximum(one.value, 1.0))
    return Estimate(one.value, np.where(none, low, one.low), np.where(none, high, one.high))


def _nothing(units: int) -> Estimate:
    return Estimate(*[np.empty((units, 0))] * 3)


def _columns(one: Estimate, names: Sequence[str], wanted: Sequence[str]) -> Estimate:
    places = [names.index(name) for name in wanted]
    return one.map(lambda end: end[:, places])
