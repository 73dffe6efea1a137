"""Fingerprints of heads: what each one does, in numbers that two models of any shape share.

A fingerprint holds the share of what the head gathers that each rule explains (group `explained`),
and its scores on made inputs less their null (group `circuits`). Rules that name the same keys for
other kinds of queries ("…, by marks") count as one, and so do rules that predict the same in one
of two networks: see `as_one`. It says nothing of depth.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import xarray as xr
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from headscope.analyses.explained.rules import RESTS
from headscope.analyses.explained.sentences import BY
from headscope.core.accumulators import Bools, Float64, Ints, ratio
from headscope.core.intervals import Estimate
from headscope.core.results import estimate, group, shape

RULES, SCORES = "explained", "circuits"  # the groups that hold them
PATTERNS = ("previous_token", "duplicate_token", "induction")
_ENDS = ("value", "low", "high")
ALIKE = 0.9  # ours: cosine of the rows of two rules, from which on they count as one
OTHERS = ("copied_attention", "retrieval")  # shares of 1, which need no null of their own


RulesAsOne = tuple[str, ...]


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of some heads.

    places       [unit, 2] place of the layer, and head, from 0
    rules        [unit, rule] share of what the head gathers that the rule explains
    left         [unit] share that none of these rules explains
    elsewhere    [unit] of that, the share of rules that were left aside
    scores       [unit, score] share of attention, less its null
    rule_names   all rules that were tried; () without the group `explained`
    score_names  () without the group `circuits`
    likeness     [rule, rule] cosine of the rows of two rules in this network's inputs
    """

    places: Ints
    rules: Estimate
    left: Estimate
    elsewhere: Float64
    scores: Estimate
    rule_names: tuple[str, ...]
    score_names: tuple[str, ...]
    likeness: Float64

    def has(self, rules: Sequence[RulesAsOne], scores: Sequence[str]) -> bool:
        """Whether it has all these rules and scores."""
        return {*chain(*rules)} <= {*self.rule_names} and {*scores} <= {*self.score_names}

    def of(self, rules: Sequence[RulesAsOne], scores: Sequence[str]) -> Fingerprints:
        """These rules, some as one, and scores, of the heads that have all of them."""
        shares = _columns(self.rules, self.rule_names, rules)
        numbers = _columns(self.scores, self.score_names, [(name,) for name in scores])
        whole = np.isfinite(np.concatenate([shares.value, numbers.value], 1)).all(1)
        others = tuple(name for name in self.rule_names if name not in {*chain(*rules)})
        aside = _columns(self.rules, self.rule_names, [others]).map(lambda end: end[:, 0])
        left = Estimate(*(getattr(self.left, end) + getattr(aside, end) for end in _ENDS))
        return Fingerprints(
            self.places[whole],
            shares.map(lambda end: end[whole]),
            left.map(lambda end: end[whole]),
            aside.high[whole],
            numbers.map(lambda end: end[whole]),
            tuple(self._most_used(some) for some in rules),
            tuple(scores),
            np.eye(len(rules)),
        )

    def _most_used(self, rules: RulesAsOne) -> str:
        """The one of some rules that explains most of all heads."""
        places = [self.rule_names.index(name) for name in rules]
        return rules[int(np.nansum(self.rules.value[:, places], 0).argmax())]


def fingerprints(trees: Iterable[xr.DataTree], *, untrained: bool = False) -> Fingerprints:
    """The fingerprints of the heads of one model, from its runs; NaN where a run lacks a head.

    untrained  the runs are of a network of a control: a share without an interval counts as exact.
               Of a model it may then be anything from 0 to 1
    """
    trees = list(trees)
    layers, heads = shape(trees[0])
    places = np.stack(np.divmod(np.arange(layers * heads), heads), -1)
    rules = scores = Estimate(*[np.empty((layers * heads, 0))] * 3)
    likeness = np.empty((0, 0))
    left = Estimate(*np.zeros((3, layers * heads)))
    rule_names, score_names = tuple[str, ...](), tuple[str, ...]()
    for tree in trees:
        if (explained := group(tree, RULES)) is not None and "rule_share" in explained:
            rules, rule_names, likeness = _of_rules(explained)
            left = _left(explained)
        if (circuits := group(tree, SCORES)) is not None:
            scores, score_names = _of_scores(circuits)
    rules, left, scores = (_with_ends(one, exact=untrained) for one in (rules, left, scores))
    nothing = np.zeros(layers * heads)
    return Fingerprints(places, rules, left, nothing, scores, rule_names, score_names, likeness)


def as_one(models: Sequence[Fingerprints], rules: Sequence[str]) -> list[RulesAsOne]:
    """The rules, of which each two are together that predict nearly the same in one of the models.

    Where the future is hidden, that holds of "all tokens" and "the own sentence": which of them a
    head gets is chance. Complete linkage, so that any two of a group are alike by ALIKE or more.
    """
    if len(rules) < 2:
        return [(name,) for name in rules]
    places = [[model.rule_names.index(name) for name in rules] for model in models]
    every = [model.likeness[np.ix_(at, at)] for model, at in zip(models, places, strict=True)]
    apart = squareform(1 - np.max(every, 0), checks=False)
    group = fcluster(linkage(apart, "complete"), 1 - ALIKE, "distance")
    numbers = dict.fromkeys(group.tolist())
    return [tuple(n for n, at in zip(rules, group, strict=True) if at == one) for one in numbers]


def distances(one: Fingerprints, other: Fingerprints) -> Estimate:
    """[unit, unit] how far heads of two models do different things, from 0.

    Of rules it is the total variation between the shares, from 0 to 1, in which all that no rule
    explains counts as the same; of scores the sum of differences. The ends are the least and the
    most that the intervals of all shares allow.
    """
    return _by_head(one, other, _apart)


def in_common(one: Fingerprints, other: Fingerprints) -> Estimate:
    """[unit, unit] how much two heads surely have in common, from 0.

    The sum over rules and scores of the smaller share, without what no rule explains; its ends are
    the least and the most that the intervals of all shares allow. At most it is also what was only
    tried as a rule for one of both.
    """
    return _by_head(one, other, _shared)


def _by_head(
    one: Fingerprints,
    other: Fingerprints,
    number: Callable[[Fingerprints, int, Fingerprints], Sequence[Float64]],
) -> Estimate:
    """[unit, unit] from a function that gives one head's row: value, low and high end."""
    rows = [number(one, at, other) for at in range(len(one.places))]  # a model's all pairs are big
    return Estimate(*(np.stack(end) for end in zip(*rows, strict=True)))


def _apart(one: Fingerprints, at: int, other: Fingerprints) -> Sequence[Float64]:
    mine, theirs = (
        [each.rules, each.left.map(lambda end: end[:, None]), each.scores] for each in (one, other)
    )
    value, low, high = (np.zeros(len(other.places)) for _ in range(3))
    for every, b, weight in zip(mine, theirs, (0.5, 0.5, 1.0), strict=True):
        a = every.map(lambda end: end[at])
        value += weight * np.abs(a.value - b.value).sum(1)
        low += weight * np.maximum(np.maximum(a.low - b.high, b.low - a.high), 0).sum(1)
        high += weight * np.maximum(a.high - b.low, b.high - a.low).sum(1)
    return value, low, high


def _shared(one: Fingerprints, at: int, other: Fingerprints) -> Sequence[Float64]:
    value, low, high = (
        np.minimum(getattr(one.rules, end)[at], getattr(other.rules, end)).sum(1)
        + np.minimum(getattr(one.scores, end)[at], getattr(other.scores, end)).sum(1)
        for end in _ENDS
    )
    unknown = np.minimum(one.elsewhere[at], other.left.high)
    return value, low, high + unknown + np.minimum(other.elsewhere, one.left.high[at])


def _of_rules(data: xr.Dataset) -> tuple[Estimate, tuple[str, ...], Float64]:
    """[unit, rule] from the slots of each head, the rules, and how alike these are; a rest counts
    as one.

    A head whose shares have no interval has none for any rule, those included that it did not get.
    """
    tried = [name.partition(BY)[0] for name in json.loads(data.attrs["rules"])]
    names = list(dict.fromkeys(tried))
    column = np.array([names.index(name) for name in tried])
    chosen = data.sel(explains="gathering")
    rest = chosen["rest"].values.ravel()  # [unit]
    numbers = chosen["rule"].values.reshape(len(rest), -1)  # [unit, slot]
    known = [names.index(name) if name in names else -1 for name in RESTS]  # older runs lack some
    rests = np.array(known)[np.maximum(rest, 0)]
    columns = np.concatenate([column[np.maximum(numbers, 0)], rests[:, None]], 1)
    used = np.concatenate([numbers >= 0, (rest >= 0)[:, None]], 1)
    shares = estimate(data, "rule_share").map(lambda end: end.reshape(len(rest), -1))

    def by_rule(end: Float64) -> Float64:
        made = np.zeros((len(rest), len(names)))
        np.add.at(made, (np.arange(len(rest))[:, None], columns), np.where(used, end, 0))
        made[(rest < 0) | np.isnan(made).any(1)] = np.nan
        return made

    return shares.map(by_rule), tuple(names), _likeness(data, column)


def _likeness(data: xr.Dataset, number: Ints) -> Float64:
    """[rule, rule] cosine of the sums of the rows of rules of one number; 0 where it is not known,
    as in runs of earlier versions.
    """
    count = number.max() + 1
    if "rule_product" not in data:
        return np.eye(count)
    of_number = (number == np.arange(count)[:, None]) + 0.0
    products = of_number @ data["rule_product"].values @ of_number.T
    size = np.sqrt(np.diagonal(products))
    cosine = np.nan_to_num(ratio(products, np.outer(size, size)))
    np.fill_diagonal(cosine, 1)
    return np.minimum(cosine, 1)


def _left(data: xr.Dataset) -> Estimate:
    """[unit] share of what a head gathers that its rules do not explain."""
    whole = estimate(data, "gathering", prediction="rules").map(np.ravel)
    return Estimate(1 - whole.value, 1 - whole.high, 1 - whole.low)


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


def _with_ends(one: Estimate, *, exact: bool) -> Estimate:
    """Ends where there are none: the value itself, or 0 and 1."""
    none: Bools = np.isfinite(one.value) & ~(np.isfinite(one.low) & np.isfinite(one.high))
    low, high = (one.value, one.value) if exact else (0.0, np.maximum(one.value, 1.0))
    return Estimate(one.value, np.where(none, low, one.low), np.where(none, high, one.high))


def _columns(one: Estimate, names: Sequence[str], wanted: Sequence[RulesAsOne]) -> Estimate:
    """[unit, group] sums over the columns of each group of names."""
    places = [[names.index(name) for name in some] for some in wanted]
    shape = (len(wanted), len(one.value))
    return one.map(lambda end: np.reshape([end[:, at].sum(1) for at in places], shape).T)
