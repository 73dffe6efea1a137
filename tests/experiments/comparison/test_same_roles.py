"""Which heads of two models have the same role?"""

from __future__ import annotations

import json
from itertools import chain, combinations

import numpy as np
import pytest
import xarray as xr
from scipy.spatial.distance import cdist, cityblock

from headscope.claims.reading import Reading
from headscope.claims.verdict import Outcome
from headscope.core.intervals import Estimate
from headscope.core.results import Variable, labelled
from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.comparison import SAME_ROLES
from headscope.experiments.comparison.compared_runs import METHOD
from headscope.experiments.comparison.fingerprints import (
    ALIKE,
    Fingerprints,
    as_one,
    distances,
    fingerprints,
    in_common,
)
from headscope.experiments.comparison.same_roles import aligned, aligned_verdict, same_roles
from headscope.experiments.comparison.same_roles_section import table, tables

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
OF_RULES = ("rule_number", "rule_number_other")
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
    whole = [end.sum(-1, keepdims=True) for end in (shares, low, high)]  # [layer, head, 1]
    made = labelled(
        {
            "gathering": Variable(Estimate(*whole), (*cell, "prediction"), "", "1", ""),
            "rule_share": Variable(Estimate(shares, low, high), (*cell, "slot"), "", "1", ""),
            "rule": Variable(rule, (*of, "rule_place"), "", "1", ""),
            "rest": Variable(np.zeros((2, layers, per_layer), int), of, "", "1", ""),
        },
        coords={"explains": ("attention", "gathering"), "prediction": ["rules"]},
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
            [f"{name}_ci_{end}" for name in ("rule_share", "gathering") for end in ("low", "high")]
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
    assert (roles["margin_ci_low"] > 0).all()
    assert (roles["mutual"] == 1).all()
    assert (roles["alike"] >= 1).all()


def test_another_way_of_comparing_has_another_number():
    """Where this fails, runs are compared in another way: raise METHOD, so that no comparison of
    before is opened as one of now."""
    rng = np.random.default_rng(3)
    one, other = (run_of([drawn(rng, 4)] * 2) for _ in range(2))
    roles = same_roles([one], [alike_in(other, ("the first token", "the separators"), 0.95)])
    numbers = {name: float(values.sum()) for name, values in roles.data_vars.items()}
    made = METHOD, len(numbers), sum(numbers.values())
    assert made == pytest.approx((2, 21, 139.9982711), abs=1e-6)


def test_nothing_in_an_untrained_network_has_a_role():
    heads = [[*drawn(np.random.default_rng(1), 3), EVEN]]
    roles = same_roles([run_of(heads)], [run_of([[EVEN] * 4] * 2)])
    assert not (roles["margin_ci_low"] > 0).any()
    assert (roles["margin_ci_high"] < 0).all()  # surely no role of theirs


def test_without_intervals_nothing_is_sure():
    """As of three documents: nor that a head has none of the rules that it did not get."""
    one, other = (
        run_of([[{name: 0.97}]], half=np.nan) for name in ("the previous token", "the next token")
    )
    other["explained"]["rest"][:] = 2  # of all rules not one was chosen for both
    for second in (one, other):
        roles = same_roles([one], [second])
        assert float(roles["margin_ci_low"][0, 0]) <= 0 < float(roles["margin_ci_high"][0, 0])


def test_what_no_rule_explains_never_proves_a_role():
    """Both heads may do anything with the 94 % that are not explained."""
    little = [[{"the previous token": 0.06}]]
    roles = same_roles([run_of(little)], [run_of(little)])
    assert float(roles["distance"][0, 0]) == 0
    assert float(roles["common"][0, 0]) == pytest.approx(0.06)
    assert float(roles["margin_ci_high"][0, 0]) < 0  # not a tenth: no role


def test_what_heads_without_training_do_is_no_role():
    """A third of broad attention is what any head does, whatever the rest is."""
    broad = [[{"all tokens evenly": 0.35}]]
    roles = same_roles([run_of(broad)], [run_of(broad)])
    assert float(roles["distance"][0, 0]) == 0
    assert float(roles["untrained"][0, 0]) > 0.5
    assert float(roles["margin_ci_high"][0, 0]) < 0


def test_a_rule_counts_as_one_whichever_queries_follow_it():
    every, marks = (
        [[{name: 0.9}]] for name in ("the previous token", "the previous token, by marks")
    )
    roles = same_roles([run_of(every)], [run_of(marks)])
    assert float(roles["distance"][0, 0]) == 0


def alike_in(run: xr.DataTree, names: tuple[str, str], cosine: float) -> xr.DataTree:
    """The run, in whose inputs these two rules predict as alike, and no others."""
    products = np.eye(len(RULES))
    at = [RULES.index(name) for name in names]
    products[at, at[::-1]] = cosine
    run["explained"]["rule_product"] = xr.DataArray(products, dims=OF_RULES)
    return run


@pytest.mark.parametrize(("cosine", "distance"), [(0.95, 0.0), (0.85, 0.9)])
def test_rules_that_predict_the_same_in_one_network_count_as_one(cosine, distance):
    """Where the future is hidden, which of both a head gets is chance."""
    names = ("the first token", "the separators")
    one, other = (run_of([[{name: 0.9}]]) for name in names)
    roles = same_roles([one], [alike_in(other, names, cosine)])
    assert float(roles["distance"][0, 0]) == pytest.approx(distance)
    assert bool(roles["margin_ci_low"][0, 0] > 0) == (distance == 0)
    kinds = json.loads(roles.attrs["names"])
    assert len(kinds) == len(RULES) - 1 - (distance == 0)  # "…, by marks" is no rule of its own
    assert roles.attrs["rules"] == len(RULES) - 1
    if distance == 0:
        assert kinds[int(roles["common_rule"][0, 0])] == names[0]  # as the first model has it


def test_likeness_is_the_cosine_of_rows_and_groups_hold_only_such():
    rng = np.random.default_rng(5)
    rows = rng.random((len(RULES), 12)) * (rng.random((len(RULES), 12)) < 0.6)  # of all queries
    run = run_of([[EVEN]])
    products = rows @ rows.T / 3
    run["explained"]["rule_product"] = xr.DataArray(products, dims=OF_RULES)
    known = fingerprints([run])
    merged = np.delete(rows, 5, 0)
    merged[4] += rows[5]  # the previous token, and that by marks
    np.testing.assert_allclose(known.likeness, 1 - cdist(merged, merged, "cosine"), atol=1e-12)
    groups = as_one([known], known.rule_names)
    assert sorted(chain(*groups)) == sorted(known.rule_names)
    for group in groups:
        places = [known.rule_names.index(name) for name in group]
        assert (known.likeness[np.ix_(places, places)] >= ALIKE).all()


def test_rules_of_one_run_alone_leave_the_verdict_open():
    """Else a head of syntax would surely have no role where nobody asked for syntax."""
    head = [[{"subject → verb": 0.9}]]
    roles = same_roles([run_of(head)], [run_of([[{}]], rules=RULES[:-1])])
    assert roles.attrs["rules_of_one"] == 1
    assert roles["margin_ci_low"].values < 0 < roles["margin_ci_high"].values


def test_without_a_control_nothing_is_asked():
    head = [[{"the previous token": 0.9}]]
    roles = same_roles([run_of(head, control=False)], [run_of(head, control=False)])
    assert np.isnan(roles["margin"]).all()
    assert np.isnan(roles["alike"]).all()


def some(values, half) -> Fingerprints:
    shares = Estimate(values, np.maximum(values - half, 0), values + half)
    rest = 1 - values.sum(1)
    left = Estimate(rest, rest - 3 * half, rest + 3 * half)
    scores = Estimate(*[values[:, :2]] * 3)
    places, nothing = np.zeros((len(values), 2), int), np.zeros(len(values))
    names, scored = ("a", "b", "c"), ("s", "t")
    return Fingerprints(places, shares, left, nothing, scores, names, scored, np.eye(3))


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
    common = in_common(one, other)
    for _ in range(200):  # anything that the intervals allow
        moved = [np.maximum(v + rng.uniform(-0.02, 0.02, v.shape), 0) for v in values]
        mine, theirs = moved[0][:, None], moved[1][None]
        left = 1 - mine.sum(-1), 1 - theirs.sum(-1)
        shared = np.minimum(mine, theirs).sum(-1)
        scores = [v[:, :2] for v in values]
        pairs = scores[0][:, None], scores[1][None]
        whole = (np.abs(mine - theirs).sum(-1) + np.abs(left[0] - left[1])) / 2
        whole += np.abs(pairs[0] - pairs[1]).sum(-1)
        shared += np.minimum(*pairs).sum(-1)
        for number, ends in ((whole, apart), (shared, common)):
            assert (ends.low <= number + 1e-12).all()
            assert (number <= ends.high + 1e-12).all()


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


def with_circuit(run: xr.DataTree, members: list[tuple[int, int]], *, random: float = 0.0):
    """The run with a circuit of these heads, whose random sets tell a share `random`."""
    layers, heads = run.attrs["layers"], run.attrs["heads"]
    nodes = Nodes(layers, heads)
    member = np.zeros(len(nodes))
    member[[nodes.head(*place) for place in members]] = 1
    whole = Variable(Estimate(*np.full((3, 1), 0.95)), ("replacement",), "", "1", "")
    made = labelled(
        {
            "accuracy": Variable(Estimate(*map(np.float64, (1, 0.9, 1))), (), "", "1", ""),
            "gap": Variable(Estimate(*map(np.float64, (1, 0.9, 1.1))), (), "", "1", ""),
            "member": Variable(member, ("node",), "", "1", ""),
            "circuit_faithfulness": whole,
            "random_faithfulness": Variable(np.full(39, random), ("draw",), "", "1", ""),
        }
    )
    groups = {path: node.to_dataset() for path, node in run.subtree_with_keys}
    groups["discovery"] = made.assign_attrs(prompts="ioi")
    return xr.DataTree.from_dict(groups)


def test_a_circuit_whose_heads_stand_elsewhere_is_aligned():
    heads = drawn(np.random.default_rng(4), 24)
    turned = heads[::-1]
    first = run_of([heads[at : at + 8] for at in (0, 8, 16)])
    second = run_of([turned[at : at + 12] for at in (0, 12)])
    units = [1, 4, 9, 15, 22]
    mine = with_circuit(first, [divmod(unit, 8) for unit in units])
    theirs = with_circuit(second, [divmod(23 - unit, 12) for unit in units])
    roles = same_roles([mine], [theirs])
    assert roles["circuit_common"].sel(among="all") == 5
    assert aligned_verdict(roles, "all").holds
    assert roles.attrs["prompts"] == "ioi"
    inside = [divmod(unit, 8) for unit in units]
    assert [*zip(*np.nonzero(roles["in_circuit"].values), strict=True)] == inside
    assert roles["other_in_circuit"].sum() == 5  # each the twin of one of these
    run = Reading(
        xr.DataTree.from_dict({"/": first.to_dataset(), "/same_roles": roles}), SAME_ROLES
    )
    rows = tables(run)["nearest_heads"].query("rank == 0")
    assert (rows["in_circuit"] == rows["other_in_circuit"]).all()
    assert rows["in_circuit"].sum() == 5
    shown = [row[-1].text for row in table(run).groups[0].rows]
    assert sorted(shown) == [""] * 19 + ["both"] * 5
    chance = with_circuit(second, [divmod(23 - unit, 12) for unit in units], random=0.95)
    nothing = same_roles([mine], [chance])
    assert aligned_verdict(nothing, "all").needs == "a circuit of made: its prompts show none"
    assert aligned_verdict(same_roles([mine], [second]), "all").needs.startswith(
        "a circuit of both"
    )
