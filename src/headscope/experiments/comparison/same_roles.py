"""Heads of two models that do the same, by their fingerprints, and how their circuits align.

Of every network some head is nearest to any other. So a head has its role in the other model only
where both are surely less than half as far apart as either is from the nearest head of a network
without training, and surely have a tenth more in common than either has with any of these. The
networks are those of the controls of both models' runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from scipy.stats import binomtest, hypergeom

from headscope.analyses.explained.sentences import LEAST_ROLE
from headscope.claims.control import controls
from headscope.claims.question import named
from headscope.claims.reading import Reading
from headscope.claims.terms import OURS
from headscope.claims.verdict import Verdict, above, beyond_chance, not_asked
from headscope.core.accumulators import Bools, Float64, Ints
from headscope.core.confidence import TAIL
from headscope.core.head_names import names_of
from headscope.core.intervals import Estimate
from headscope.core.results import Variable, at, estimate, group, labelled, model_name, shape
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.section import is_circuit, told_apart
from headscope.experiments.comparison.fingerprints import (
    RULES,
    SCORES,
    Fingerprints,
    as_one,
    distances,
    fingerprints,
    in_common,
)

NEAR = 0.5  # ours: of the distance to the nearest head without training
ROLE = LEAST_ROLE  # more in common than with heads without training
LISTED = 3  # nearest heads of each
DISCOVERY = "discovery"
AMONG = ("all", "same")  # heads of the first model: all, or those with the same role in the second
NO_UNTRAINED = "heads without training: runs with a control, computed by this version"
NO_CIRCUITS = "a circuit of both models: headscope circuits MODEL --prompts NAME, named by --also"
Trees = Sequence[xr.DataTree]
TIDY = ("distance", "untrained", "common", "margin", "alike")
IN_CIRCUITS = ("in_circuit", "other_in_circuit")
OF_HEADS = (*TIDY, "other_untrained", "mutual", "common_rule", *IN_CIRCUITS)
CELL, RANKED = ("layer", "head"), ("layer", "head", "rank")


def same_roles(first: Trees, second: Trees) -> xr.Dataset | None:
    """The group `same_roles`: for each head of a model the nearest heads of another one.

    first, second  the results of runs of each model
    returns        distance [layer, head] to the nearest head, its ends the least and the most that
                   the data allow; untrained and other_untrained, from either of both to the nearest
                   head without training; common, the share that both have in common, and
                   common_rule, the number of the rule or score behind most of it among the
                   attribute `names`; margin, by how much both surely have one role: see
                   `_Match.margin`, NaN without heads without training; alike, how many heads of
                   the second model surely have it; mutual, 1: each is the other's nearest;
                   other_layer, other_head and rank_distance [layer, head, rank], the nearest heads;
                   in_circuit and other_in_circuit, 1: the head is in its model's circuit, and its
                   nearest one in that of the other; circuit_… [among], see `aligned`.
                   None where the runs of both models hold no fingerprint of the same kind
    """
    models = fingerprints(first), fingerprints(second)
    rules, scores = (_common(models, kind) for kind in ("rule_names", "score_names"))
    if not (rules or scores):
        return None
    groups = as_one(models, rules)
    one, other = (model.of(groups, scores) for model in models)
    if not (len(one.places) and len(other.places)):
        return None
    networks = [network for trees in (first, second) for network in _untrained(trees)]
    whole = (network.of(groups, scores) for network in networks if network.has(groups, scores))
    none = [network for network in whole if len(network.places)]
    match = _Match(one, other, *(_beside(model, none) for model in (one, other)))
    circuits, needs = _circuits(first, second)
    members = [
        whole[places[:, 0], places[:, 1]]
        for whole, places in zip(circuits, (one.places, other.places[match.nearest]), strict=False)
    ]
    variables = _of_heads(match, shape(first[0]), members)
    if members:
        mine, theirs = members
        variables |= aligned(mine, theirs, match.of_nearest(match.margin.low) > 0)
    tried = ({*model.rule_names} for model in models)
    result = labelled(variables, coords={"among": AMONG, "rank": range(LISTED)})
    return result.assign_attrs(
        other_model=model_name(second[0]),
        other_layers=shape(second[0])[0],
        other_heads=shape(second[0])[1],
        other_numbers=" ".join(map(str, names_of(second[0]).numbers)),
        names=json.dumps([*one.rule_names, *scores]),
        rules=len(rules),
        rules_of_one=len(set.symmetric_difference(*tried)) if rules else 0,
        scores=", ".join(scores),
        untrained_heads=sum(len(some.places) for some in none),
        circuit_needs=needs,
        prompts=_prompts(first, second),
    )


def aligned(circuit: Bools, in_other: Bools, same: Bools) -> dict[str, Variable]:
    """How many nearest heads of a circuit's heads are in the other model's circuit.

    circuit   [unit] whether a head of the first model is in its circuit
    in_other  [unit] whether its nearest head is in that of the second
    same      [unit] whether that one surely has the same role
    returns   circuit_shared, a share with its interval (Clopper and Pearson); circuit_random, that
              of random sets of as many heads, with the ends that 95 % of them keep; circuit_p, how
              often these share as much or more; circuit_heads and circuit_common, the numbers
              behind them: of AMONG
    """
    rows = []
    for among in (np.ones_like(same), same):
        heads, common = int((circuit & among).sum()), int((circuit & among & in_other).sum())
        drawn = hypergeom(int(among.sum()), int((in_other & among).sum()), heads)
        if not heads:
            rows.append([np.nan] * 7 + [0, 0])
            continue
        ends = binomtest(common, heads).proportion_ci()
        usual = (drawn.mean(), drawn.ppf(TAIL), drawn.ppf(1 - TAIL))
        numbers = [common / heads, ends.low, ends.high, *(one / heads for one in usual)]
        rows.append([*numbers, drawn.sf(common - 1), heads, common])
    columns = np.array(rows, np.float64).T
    words = {
        "circuit_shared": "share of the circuit’s heads whose nearest head is in the other circuit",
        "circuit_random": "the same of random sets of as many heads",
        "circuit_p": "share of random sets that share as much or more",
        "circuit_heads": "heads of the circuit",
        "circuit_common": "of them, those whose nearest head is in the other circuit",
    }
    values = [Estimate(*columns[:3]), Estimate(*columns[3:6]), *columns[6:]]
    return {
        name: Variable(value, ("among",), said, "1", OURS, over="heads", tidy=False)
        for (name, said), value in zip(words.items(), values, strict=True)
    }


def aligned_verdict(data: xr.Dataset, among: str) -> Verdict:
    """Whether the circuits share more heads of one role than random sets of that size."""
    if "circuit_shared" not in data:
        return not_asked(str(data.attrs["circuit_needs"]))
    shared, random = (
        estimate(data, f"circuit_{name}", among=among) for name in ("shared", "random")
    )
    p = float(data["circuit_p"].sel(among=among))
    return beyond_chance(above(*at(shared), bound=float(random.value)), p)


def _common(models: Sequence[Fingerprints], kind: str) -> tuple[str, ...]:
    """Names that both models have, in the order of the first."""
    first, second = (getattr(model, kind) for model in models)
    return tuple(name for name in first if name in second)


def _untrained(trees: Trees) -> list[Fingerprints]:
    """The heads of the networks of the control, those of several runs together by their name."""
    networks = dict[str, list[xr.DataTree]]()
    for tree in trees:
        for network in controls(tree):
            if RULES in network.children or SCORES in network.children:
                networks.setdefault(str(network.attrs["model"]), []).append(network)
    return [fingerprints(some, untrained=True) for some in networks.values()]


@dataclass(frozen=True)
class _Untrained:
    """Heads of a model beside networks without training; NaN without any.

    apart   [unit] distance to the nearest of their heads
    common  [unit] the most in common with one of them
    """

    apart: Estimate
    common: Estimate


def _beside(model: Fingerprints, untrained: Sequence[Fingerprints]) -> _Untrained:
    if not untrained:
        nothing = Estimate(*np.full((3, len(model.places)), np.nan))
        return _Untrained(nothing, nothing)

    def extreme(number: Callable[..., Estimate], of: np.ufunc) -> Estimate:
        every = [number(model, network) for network in untrained]
        ends = ("value", "low", "high")
        return Estimate(
            *(of.reduce([of.reduce(getattr(one, end), 1) for one in every]) for end in ends)
        )

    return _Untrained(extreme(distances, np.minimum), extreme(in_common, np.maximum))


@dataclass(frozen=True)
class _Match:
    """The heads of two models beside each other, and beside heads without training."""

    one: Fingerprints
    other: Fingerprints
    first: _Untrained
    second: _Untrained

    @cached_property
    def apart(self) -> Estimate:
        """[unit, unit of the other model] distances."""
        return distances(self.one, self.other)

    @cached_property
    def common(self) -> Estimate:
        """[unit, unit of the other model] what both have in common."""
        return in_common(self.one, self.other)

    @cached_property
    def nearest(self) -> Ints:
        """[unit] the nearest head of the other model."""
        return np.asarray(self.apart.value.argmin(1))

    def of_nearest(self, values: Float64) -> Float64:
        """[unit] from [unit, unit of the other model]."""
        return np.asarray(values[np.arange(len(values)), self.nearest])

    @cached_property
    def rule(self) -> Ints:
        """[unit] of which rule or score a head has most in common with its nearest."""
        parts = [
            np.minimum(getattr(self.one, kind).value, getattr(self.other, kind).value[self.nearest])
            for kind in ("rules", "scores")
        ]
        return np.asarray(np.concatenate(parts, 1).argmax(1))

    @cached_property
    def margin(self) -> Estimate:
        """[unit, unit] by how much the conditions of one role hold, that of the weakest.

        Both heads are nearer than NEAR of the way from either to heads without training; and they
        have ROLE more in common than either has with these.
        """

        def ends(mine: str, theirs: str) -> Float64:
            """The end `mine` of what speaks for one role, `theirs` of what speaks against it."""
            apart = np.minimum(
                getattr(self.first.apart, mine)[:, None], getattr(self.second.apart, mine)
            )
            common = np.maximum(
                getattr(self.first.common, theirs)[:, None], getattr(self.second.common, theirs)
            )
            nearer = NEAR * apart - getattr(self.apart, theirs)
            return np.asarray(np.minimum(nearer, getattr(self.common, mine) - common - ROLE))

        return Estimate(ends("value", "value"), ends("low", "high"), ends("high", "low"))


def _of_heads(
    match: _Match, size: tuple[int, int], members: Sequence[Bools]
) -> dict[str, Variable]:
    one, other, margin = match.one, match.other, match.margin
    listed = min(LISTED, len(other.places))
    order = np.argsort(match.apart.value, axis=1, kind="stable")[:, :listed]  # [unit, rank]
    ranked = np.full((len(one.places), LISTED, 3), np.nan)  # distance, layer, head
    ranked[:, :listed, 0] = np.take_along_axis(match.apart.value, order, 1)
    ranked[:, :listed, 1:] = other.places[order]

    def on_grid(values: Float64) -> Float64:
        grid = np.full((*size, *values.shape[1:]), np.nan)
        grid[one.places[:, 0], one.places[:, 1]] = values
        return grid

    alike = np.where(np.isnan(margin.value).all(1), np.nan, (margin.low > 0).sum(1))
    mutual = match.apart.value.argmin(0)[match.nearest] == np.arange(len(one.places))
    known: dict[str, tuple[Estimate | Float64, str]] = {
        "distance": (
            match.apart.map(match.of_nearest),
            "distance to the nearest head of the other model",
        ),
        "untrained": (match.first.apart, "distance to the nearest head without training"),
        "other_untrained": (
            match.second.apart.map(lambda end: end[match.nearest]),
            "distance of the nearest head to the nearest one without training",
        ),
        "common": (
            match.common.map(match.of_nearest),
            "share that rules explain of both heads alike, and scores that both have",
        ),
        "margin": (
            margin.map(match.of_nearest),
            "by how much both heads have one role: above 0 they have",
        ),
        "alike": (alike, "heads of the other model that surely have the same role"),
        "mutual": (mutual.astype(np.float64), "1: each is the other’s nearest head"),
        "common_rule": (
            match.rule.astype(np.float64),
            "number of the rule or score that both have most in common, among `names`",
        ),
        "rank_distance": (ranked[..., 0], "distance to the nearest heads"),
        "other_layer": (ranked[..., 1], "place of the layer of the nearest heads"),
        "other_head": (ranked[..., 2], "the nearest heads in their layers"),
    }
    said_of = ("1: the head is in the circuit", "1: the nearest head is in the other’s circuit")
    for name, member, said in zip(IN_CIRCUITS, members, said_of, strict=False):
        known[name] = (member.astype(np.float64), said)
    made = dict[str, Variable]()
    for name, (value, said) in known.items():
        grid = value.map(on_grid) if isinstance(value, Estimate) else on_grid(value)
        dims = CELL if name in OF_HEADS else RANKED
        made[name] = Variable(grid, dims, said, "1", OURS, tidy=name in TIDY)
    return made


def _circuits(first: Trees, second: Trees) -> tuple[list[Bools], str]:
    """[layer, head] the circuits of both models; or none, and what is needed."""
    question, members = named(DISCOVERY), list[Bools]()
    assert question is not None
    for trees in (first, second):
        run = _with_circuit(trees)
        if run is None:
            return [], NO_CIRCUITS
        reading = Reading(run, question)
        if not (told_apart(reading) and is_circuit(reading)):
            return [], f"a circuit of {model_name(run)}: its prompts show none"
        member = reading.data["member"].values == 1
        members.append(member[Nodes(*shape(run)).places_of_heads()])
    return members, ""


def _with_circuit(trees: Trees) -> xr.DataTree | None:
    return next((tree for tree in trees if group(tree, DISCOVERY) is not None), None)


def _prompts(first: Trees, second: Trees) -> str:
    """The prompts of the circuits: `ioi`, or `ioi and greater-than` where they differ."""
    runs = [_with_circuit(trees) for trees in (first, second)]
    names = [str(run[DISCOVERY].attrs.get("prompts", "")) for run in runs if run is not None]
    return " and ".join(dict.fromkeys(names))
