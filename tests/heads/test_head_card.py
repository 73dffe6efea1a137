"""Is all that is known of a head on its card, with the right rank, relations and maps?"""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from heads.test_functions import surpassing
from heads.test_notable_heads import plant
from headscope.analyses.dependency.claims import best_relations
from headscope.analyses.patterns.typical_maps import head_maps
from headscope.claims.card_part import TypicalMap
from headscope.claims.head_labels import head_labels
from headscope.core.results import derived_once, shape
from headscope.core.stored_maps import stored_inputs
from headscope.core.wording import percent
from headscope.errors import InputError
from headscope.heads.head_card import card_json, head_card
from recorded import (
    ALONE,
    BOTH,
    DECODER,
    FIRST,
    LANGUAGE,
    SECOND,
    hostile,
    reading,
    recorded,
    with_maps,
)


@pytest.fixture(scope="module")
def whole():
    return recorded(6, 12, groups=BOTH)


def numbers_of(tree, layer, head):
    return {number.metric.key: number for number in head_card(tree, layer, head).numbers}


# --- numbers --------------------------------------------------------------------------------


def test_a_number_stands_with_its_interval_and_its_place_among_the_heads():
    tree = recorded(2, 2, groups=("entropy",))
    for at, (value, place) in enumerate(
        [(1.0, (0, 0)), (3.0, (0, 1)), (2.0, (1, 0)), (2.0, (1, 1))]
    ):
        where = {"layer": place[0], "head": place[1], "query": "all"}
        plant(tree, "entropy", "entropy", value, value - 0.1, value + 0.2 + at, **where)
    ranks = [numbers_of(tree, *divmod(unit, 2))["entropy.entropy.all"] for unit in range(4)]
    assert [(n.rank, n.of, n.percentile) for n in ranks] == [
        (4, 4, 0),
        (1, 4, 100),
        (2, 4, 50),
        (2, 4, 50),
    ]
    assert ranks[1].ends == (3.0, 2.9, 4.2)


def test_a_head_without_a_number_has_no_rank_and_does_not_count_in_those_of_others():
    tree = recorded(2, 2, groups=("entropy",))
    plant(tree, "entropy", "entropy", np.nan, np.nan, np.nan, layer=0, head=0)
    missing, other = (numbers_of(tree, 0, head)["entropy.entropy.all"] for head in (0, 1))
    assert (missing.rank, missing.of) == (0, 3)
    assert np.isnan(missing.percentile)
    assert other.of == 3


def test_one_head_alone_has_a_rank_and_no_percentile():
    number = numbers_of(recorded(1, 1, groups=("entropy",)), 0, 0)["entropy.entropy.all"]
    assert (number.rank, number.of) == (1, 1)
    assert np.isnan(number.percentile)


# --- relations ------------------------------------------------------------------------------


def test_relations_are_those_farthest_above_their_baseline_by_a_search_through_all(whole):
    dataset = whole["dependency"].to_dataset()
    for place in ((2, 1), (2, 0), (0, 0)):
        wanted = []
        for relation in dataset["relation"].values.tolist()[2:]:
            here = dataset.sel(relation=relation)
            if relation in ("root", "punct") or int(here["count"]) < 25:
                continue
            both = here["accuracy"].values[place]
            above = both.max() - float(here["baseline"])
            if above > 0:
                way = dataset["direction"].values[both.argmax()]
                rank = int((here["accuracy"].sel(direction=way) > both.max()).sum()) + 1
                wanted.append((-above, relation, str(way), rank))
        found = best_relations(whole, *place)
        assert [(r.relation, r.direction, r.rank) for r in found] == [
            row[1:] for row in sorted(wanted)[:5]
        ]
    assert best_relations(whole, 2, 0)[0].rank == 1


def test_the_card_shows_what_is_held_out_of_the_best_head_of_a_relation_and_of_no_other(whole):
    dataset = whole["dependency"].to_dataset()
    names, accuracy = dataset["relation"].values.tolist(), dataset["accuracy"]
    with derived_once():
        found = [one for at in np.ndindex(*shape(whole)) for one in best_relations(whole, *at)]
    for one in found:
        at = names.index(one.relation)
        if (accuracy.isel(relation=at).values > one.value).any():
            assert "held out" not in one.percent
        elif one.value == dataset["best_accuracy"].values[at]:
            held_out = percent(float(dataset["held_out"].values[at]))
            assert one.percent.endswith(f"({held_out} held out)")


def test_a_run_without_trees_has_no_relations():
    assert best_relations(recorded(2, 2), 0, 0) == []


# --- maps -----------------------------------------------------------------------------------


def test_links_are_the_largest_between_tokens_of_the_text_one_for_each_that_looks():
    weights = np.array(
        [
            [1.0, 0, 0, 0],
            [0.5, 0.1, 0.3, 0.1],
            [0.05, 0.15, 0.0, 0.8],
            [0.2, 0.6, 0.1, 0.1],
        ]
    )
    special = np.array([True, False, False, True])
    found = TypicalMap(("[CLS]", "a", "b", "[SEP]"), special, weights)
    assert found.links() == [(1, 2, 0.3), (2, 1, 0.15)]
    assert found.links(most=1) == [(1, 2, 0.3)]
    assert dict(found.rests) == {"[CLS]": pytest.approx(1.75 / 4), "[SEP]": pytest.approx(0.25)}
    only = TypicalMap(("x", "x"), np.array([True, True]), np.eye(2))
    assert only.links() == [(0, 0, 1.0), (1, 1, 1.0)]


def test_the_maps_of_the_classes_are_shown_where_the_run_kept_them():
    maps = head_maps(reading(with_maps(recorded(groups=BOTH)), "patterns"))
    first, second = maps.of(2, 3)
    assert maps.source == "patterns"
    assert (first.tokens, first.kind, first.score) == (tuple(FIRST), "diagonal", 0.9)
    assert first.special.tolist() == [True, False, False, True]
    assert (second.tokens, second.weights.shape) == (tuple(SECOND), (3, 3))
    assert second.weights[2].tolist() == [0, 0.75, 0.25]


def test_else_inputs_whose_shares_are_nearest_to_the_means_by_loops(whole):
    maps, kept = head_maps(reading(whole, "patterns")), stored_inputs(whole)
    surface, entropy = whole["surface"].attention, whole["entropy"]

    def away(one, place):
        weights, n = one.attention[place].astype(float), len(one.tokens)
        here = {
            "self": sum(weights[i, i] for i in range(n)) / n,
            "previous": sum(weights[i, i - 1] for i in range(1, n)) / n,
            "next": sum(weights[i, i + 1] for i in range(n - 1)) / n,
            "first": weights[:, 0].mean(),
            "cls": weights[:, 0].mean(),
            "sep": sum(weights[:, j].mean() for j in range(1, n) if one.special[j]),
            "punctuation": sum(weights[:, j].mean() for j in range(n) if one.tokens[j] in ".,"),
        }
        found = [
            abs(share - float(surface.sel(target=name)[place])) for name, share in here.items()
        ]
        nats = np.mean([-sum(p * np.log(p) for p in row if p > 0) for row in weights])
        own = float(entropy.entropy.sel(query="all")[place]) / float(entropy.uniform)
        return max([*found, abs(nats / np.log(n) - own)])

    assert maps.source == "examples"
    for place in ((0, 6), (4, 2), (5, 9)):
        found = maps.of(*place)
        distances = sorted(away(one, place) for one in kept)
        assert [one.away for one in found] == pytest.approx(distances[:3])
        nearest = min(kept, key=lambda one: away(one, place))
        assert found[0].tokens == nearest.tokens
        assert (found[0].weights == nearest.attention[place]).all()


def test_a_run_that_kept_no_maps_has_none():
    maps = head_maps(reading(recorded(2, 2), "patterns"))
    assert (maps.source, maps.of(0, 0)) == ("", [])


# --- the whole ------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [(6, 0), (0, 12), (-1, 0), (0, -1)])
def test_a_head_that_is_not_there_is_refused_with_those_that_are(whole, place):
    with pytest.raises(InputError, match=r"wanted one of 6 layers × 12 heads: L1·H1 to L6·H12"):
        head_card(whole, *place)


@pytest.mark.parametrize(
    "made",
    [
        lambda: recorded(2, 3, groups=()),
        lambda: recorded(2, 3, kind=DECODER),
        lambda: recorded(2, 3, kind=ALONE),
        lambda: hostile(recorded(2, 3, groups=LANGUAGE)),
        lambda: with_maps(recorded(2, 3)),
    ],
)
def test_a_card_is_made_from_whatever_there_is_and_its_json_holds_no_nan(made):
    tree = made()
    card = head_card(tree, 1, 2)
    told = json.loads(json.dumps(card_json(tree, card), allow_nan=False))
    assert (told["layer"], told["head"], told["name"]) == (1, 2, "L2·H3")
    assert len(told["numbers"]) == len(card.numbers)


def test_the_json_tells_the_numbers_of_the_run(whole):
    told = card_json(whole, head_card(whole, 2, 0))
    share = whole["surface"].attention.sel(target="cls")[2, 0]
    number = next(n for n in told["numbers"] if n["key"] == "surface.attention.cls")
    assert number["value"] == pytest.approx(float(share))
    assert number["analysis"] == "surface"
    known = surpassing(recorded(6, 12, groups=BOTH))
    told = card_json(known, head_card(known, 2, 1))
    labels = head_labels(known)[2, 1].labels
    assert [label["text"] for label in told["labels"]] == [label.label for label in labels]
    assert "dependency" in {label["analysis"] for label in told["labels"]}
    told = card_json(whole, head_card(whole, 2, 0))
    js = whole["divergence"].js.values
    unit = 2 * 12
    nearest = told["nearest"][0]
    others = np.delete(js[unit], unit)
    assert nearest["value"] == pytest.approx(others.min())
    assert nearest["layer"] * 12 + nearest["head"] == np.argsort(js[unit])[1]
    assert told["maps"][0]["tokens"][0] == "[CLS]"
    assert len(told["maps"][0]["weights"]) == len(told["maps"][0]["tokens"])


def test_shares_of_classes_are_on_the_card():
    tree = with_maps(recorded(2, 2), shares={(0, 1): {"block": (0.6, 0.55, 0.65)}})
    card = head_card(tree, 0, 1)
    assert tuple(card.data["classes"]["block"].values()) == (0.6, 0.55, 0.65)
    assert isinstance(tree["patterns"], xr.DataTree)
    assert "patterns.share.block" in {number.metric.key for number in card.numbers}
    assert not [n.metric.key for n in card.numbers if "typical" in n.metric.key]
