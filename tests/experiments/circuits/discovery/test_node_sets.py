"""Are orders, random sets and areas what they are called?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.experiments.circuits.discovery.node_names import Nodes
from headscope.experiments.circuits.discovery.node_sets import (
    SHARES,
    areas,
    first_of_order,
    in_order,
    random_sets,
)


def test_orders_are_by_score_or_by_size_and_leave_out_what_has_none():
    scores = np.array([0.5, -2.0, np.nan, 1.0])
    assert in_order(scores) == [3, 0, 1]
    assert in_order(scores, absolute=True) == [1, 3, 0]
    sets = first_of_order([3, 0, 1], [0, 2], 4)
    assert sets.tolist() == [[False] * 4, [True, False, False, True]]


def test_random_sets_hold_as_many_of_each_kind_and_are_no_copies():
    nodes = Nodes(3, 4)
    member = np.zeros(len(nodes), bool)
    member[[0, nodes.head(0, 1), nodes.head(2, 3), nodes.feed_forward(1)]] = True
    sets = random_sets(member, nodes, draws=200, seed=1)
    kinds = nodes.kinds()
    assert sets[:, 0].all()
    assert (sets[:, kinds == "head"].sum(1) == 2).all()
    assert (sets[:, kinds == "mlp"].sum(1) == 1).all()
    assert (sets != member).any(1).all()
    assert len(np.unique(sets, axis=0)) > 60
    again = random_sets(member, nodes, draws=200, seed=1)
    assert np.array_equal(sets, again)


def test_areas_of_a_straight_line_have_closed_forms():
    shares = np.array(SHARES)
    width = 1 - shares[0]
    cpr, cmd = areas(shares[:, None] * [1.0, 0.0])
    assert cpr == pytest.approx([(1 - shares[0] ** 2) / 2, 0])
    assert cmd == pytest.approx([width - (1 - shares[0] ** 2) / 2, width])
    over = areas(np.full(len(shares), 1.5))
    assert [float(one) for one in over] == pytest.approx([1.5 * width, 0.5 * width])


def test_nodes_are_named_as_eap_names_them_in_data_and_as_pages_name_heads():
    from headscope.core.head_names import HeadNames

    nodes, names = Nodes(2, 2), HeadNames((1, 4), first=1)
    keys = ["input", "a1.h0", "a1.h1", "m1", "a4.h0", "a4.h1", "m4"]
    assert nodes.keys(names) == keys
    assert nodes.printed(names)[:4] == ["input", "L2·H1", "L2·H2", "MLP 2"]
    assert [keys[at] for at in nodes.places_of_heads()[1]] == ["a4.h0", "a4.h1"]
    assert keys[nodes.feed_forward(1)] == "m4"
    assert nodes.kinds().tolist() == ["input", "head", "head", "mlp", "head", "head", "mlp"]
