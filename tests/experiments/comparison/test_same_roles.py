"""Which heads of two models have the same role?"""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from scipy.spatial.distance import cityblock

from headscope.claims.verdict import Outcome
from headscope.core.intervals import Estimate
from headscope.core.results import Variable, labelled
from headscope.experiments.comparison.fingerprints import Fingerprints, distances, fingerprints
from headscope.experiments.comparison.same_roles import aligned, aligned_verdict, same_roles

RULES = (
    "the first token",
    "the separators",
    "the token itself",
    "all tokens evenly",
    "the previous token",
    "the previous token, by marks",
    "the next token",
    "subject → verb",
)
EVEN = {"all tokens evenly": 0.95}
Head = dict[str, float]


def explained(heads: list[list[Head]], *, half: float = 0.01, rules=RULES) -> xr.Dataset:
    """Results of heads [layer][head] whose shares of rules are given; ± `half`."""
    layers, per_layer = len(heads), len(heads[0])
    rule = np.full((2, layers, per_layer, 5), -1)
    shares = np.zeros((layers, per_layer, 6))
    for (layer, head), _ in np.ndenumerate(np.zeros((layers, per_layer))):
        for slot, (name, share) in enumerate(heads[layer][head].items()):
            rule[:, layer, head, slot] = rules.index(name)
            shares[layer, head, slot] = share
    low, high = np.maximum(shares - half, 0), np.minimum(shares + half, 1)
    cell, of = ("layer", "head"), ("explains", "layer", "head")
    made = labelled(
        {
            "rule_share": Variable(Estimate(shares, low, high), (*cell, "slot"), "", "1", ""),
            "rule": Variable(rule, (*of, "rule_place"), "", "1", ""),
            "rest": Variable(np.zeros((2, layers, per_layer), int), of, "", "1", ""),
        },
        coords={"explains": ("attention", "gathering")},
    )
    return made.assign_attrs(rules=json.dumps(rules))


def run_of(heads: list[list[Head]], *, control: bool = True, **more) -> xr.DataTree:
    """A run with the group `explained`, and a control whose heads attend evenly."""
    attrs = {"model": "made", "layers": len(heads), "heads": len(heads[0])}
    groups = {"/": xr.Dataset(attrs=attrs), "/explained": explained(heads, **more)}
    if control:
        none = xr.Dataset(attrs={**attrs, "model": "untrained"})
        groups |= {"/control": xr.Dataset(), "/control/untrained": none}
        evenly = explained([[EVEN] * len(heads[0])] * len(heads), **more)
        groups["/control/untrained/explained"] = evenly.drop_vars(
            ["rule_share_ci_low", "rule_share_ci_high"]
        )
    return xr.DataTree.from_dict(groups)


def drawn(rng, count: int) -> list[Head]:
    """Heads that four rules explain by 97 %, one of them most."""
    names = ["the first token", "the previous token", "the next token", "subject → verb"]
    parts = rng.dirichlet([0.3] * 4, count) * 0.97
    return [dict(zip(names, row.tolist(), strict=True)) for row in parts]


def test_every_head_finds_its_twin_in_a_copy_of_another_shape():
    rng = np.random.default_rng(0)
    heads = drawn(rng, 12)
    order = rng.permutation(12)
    first = [heads[at : at + 4] for at in (0, 4, 8)]
    second = [[heads[one] for one in order[at : at + 6]] for at in (0, 6)]
    roles = same_roles([run_of(first)], [run_of(second)])
    twins = 6 * roles["other_layer"].values[..., 0] + roles["other_head"].values[..., 0]
    np.testing.assert_array_equal(order[twins.ravel().astype(int)], np.arange(12))
    np.testing.assert_allclose(roles["distance"], 0, atol=1e-12)
    assert (roles["nearer_ci_low"] > 0).all()
    assert (roles["mutual"] == 1).all()
    assert (roles["alike"] >= 1).all()


def test_nothing_in_an_untrained_network_has_a_role():
    heads = [[*drawn(np.random.default_rng(1), 3), EVEN]]
    roles = same_roles([run_of(heads)], [run_of([[EVEN] * 4] * 2)])
    assert not (roles["nearer_ci_low"] > 0).any()
    assert (roles["nearer_ci_high"].values[0, :3] < 0).all()  # surely no role of theirs


def test_what_no_rule_explains_never_proves_a_role():
    """Both heads may do anything with the nine tenths that are not explained."""
    little = [[{"the previous token": 0.1}]]
    roles = same_roles([run_of(little)], [run_of(little)])
    assert float(roles["distance"][0, 0]) == 0
    assert float(roles["distance_ci_high"][0, 0]) > 0.9
    low, high = (float(roles[f"nearer_ci_{end}"][0, 0]) for end in ("low", "high"))
    assert low < 0 < high  # cannot tell


def test_a_rule_counts_as_one_whichever_queries_follow_it():
    every, marks = (
        [[{name: 0.9}]] for name in ("the previous token", "the previous token, by marks")
    )
    roles = same_roles([run_of(every)], [run_of(marks)])
    assert float(roles["distance"][0, 0]) == 0


def test_rules_of_one_run_alone_leave_the_verdict_open():
    """Else a head of syntax would surely have no role where nobody asked for syntax."""
    head = [[{"subject → verb": 0.9}]]
    roles = same_roles([run_of(head)], [run_of([[{}]], rules=RULES[:-1])])
    assert roles.attrs["rules_of_one"] == 1
    assert roles["nearer_ci_low"].values < 0 < roles["nearer_ci_high"].values


def test_without_a_control_nothing_is_asked():
    head = [[{"the previous token": 0.9}]]
    roles = same_roles([run_of(head, control=False)], [run_of(head, control=False)])
    assert np.isnan(roles["nearer"]).all()
    assert np.isnan(roles["alike"]).all()


def some(values, half) -> Fingerprints:
    shares = Estimate(values, np.maximum(values - half, 0), values + half)
    scores = Estimate(*[values[:, :2]] * 3)
    places = np.zeros((len(values), 2), int)
    return Fingerprints(places, shares, scores, ("a", "b", "c"), ("s", "t"))


def test_distances_are_total_variation_and_sums_and_hold_all_that_intervals_allow():
    rng = np.random.default_rng(2)
    values = [rng.dirichlet([1] * 4, size)[:, :3] for size in (5, 6)]
    one, other = (some(each, 0.02) for each in values)
    apart = distances(one, other)
    for at, mine in enumerate(values[0]):
        for to, theirs in enumerate(values[1]):
            shares = [np.append(row, 1 - row.sum()) for row in (mine, theirs)]
            expected = cityblock(*shares) / 2 + cityblock(mine[:2], theirs[:2])
            assert apart.value[at, to] == pytest.approx(expected, abs=1e-12)
    for _ in range(200):  # anything that the intervals allow, the rest the same or not
        moved = [each + rng.uniform(-0.02, 0.02, each.shape) for each in values]
        moved = [np.maximum(each, 0) for each in moved]
        mine, theirs = moved[0][:, None], moved[1][None]
        common = np.minimum(mine, theirs).sum(-1)
        left = np.minimum(1 - mine.sum(-1), 1 - theirs.sum(-1)).clip(0)
        scores = np.abs(values[0][:, None, :2] - values[1][None, :, :2]).sum(-1)
        whole = 1 - common - rng.uniform() * left + scores
        assert (apart.low <= whole + 1e-12).all()
        assert (whole <= apart.high + 1e-12).all()


def test_random_sets_share_as_counting_all_of_them_says():
    rng = np.random.default_rng(3)
    in_other, size = rng.random(9) < 0.4, 4
    circuit = np.isin(np.arange(9), [0, 2, 5, 7])
    made = labelled(aligned(circuit, in_other, np.ones(9, bool)), coords={"among": ["all", "same"]})
    every = [in_other[list(some)].sum() for some in combinations(range(9), size)]
    common = in_other[circuit].sum()
    assert float(made["circuit_p"][0]) == pytest.approx(np.mean(np.array(every) >= common))
    assert float(made["circuit_random"][0]) == pytest.approx(np.mean(every) / size)
    assert float(made["circuit_shared"][0]) == common / size


def test_circuits_align_only_beyond_random_sets():
    circuit = np.arange(40) < 10
    same = np.ones(40, bool)
    far = circuit[::-1]
    outcomes = []
    for other in (circuit, far, np.arange(40) % 4 == 0):
        made = labelled(aligned(circuit, other, same), coords={"among": ["all", "same"]})
        outcomes.append(aligned_verdict(made, "all").outcome)
    assert outcomes == [Outcome.HOLDS, Outcome.CANNOT_TELL, Outcome.CANNOT_TELL]
    nothing = xr.Dataset(attrs={"circuit_needs": "circuits"})
    assert aligned_verdict(nothing, "all").needs == "circuits"


def test_scores_count_less_their_null():
    """A head that scores as its null scores nothing."""
    attrs = {"model": "made", "layers": 1, "heads": 2}
    score = np.array([[[0.1, 0.0, 0.9], [0.3, 0.2, 0.1]]])
    null = np.array([[[0.2, 0.0, 0.1], [0.1, 0.2, 0.1]]])
    dims = ("layer", "head", "circuit")
    ends = {"score": score, "null": null}
    made = labelled(
        {n: Variable(Estimate(v, v, v), dims, "", "1", "") for n, v in ends.items()},
        coords={"circuit": ["previous_token", "duplicate_token", "induction"]},
    )
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), "/circuits": made})
    known = fingerprints([tree])
    np.testing.assert_allclose(known.scores.value, [[0, 0, 0.8], [0.2, 0, 0]])
