"""Does a head get exactly the labels that its numbers give it, and none that they do not?"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from heads.test_functions import surpassing
from heads.test_notable_heads import QUIET, plant, quiet_tree
from headscope.claims.control import CONTROL
from headscope.claims.head_labels import (
    UNLABELLED,
    head_labels,
    label_rules,
    run_labels,
    with_label,
)
from headscope.heads.tables import head_table, label_table, write_tables
from recorded import BOTH, DECODER, LANGUAGE, changed, hostile, recorded, with_maps

NONE = np.nan


def texts(tree, layer=0, head=0):
    """The labels of one head, with their numbers."""
    return [label.label for label in head_labels(tree)[layer, head].labels]


def with_share(target, value, low, high, *, tree=None, head=0):
    """A quiet run in which one head of the first layer attends so to a target."""
    where = {"layer": 0, "head": head, "target": target}
    return plant(tree or quiet_tree(), "surface", "attention", value, low, high, **where)


def norms(tree, cls, sep, other, *, spread=0.0):
    for category, value in (("cls", cls), ("sep", sep), ("other", other)):
        plant(
            tree,
            "norms",
            "weighted_norm",
            value,
            value - spread,
            value + spread,
            layer=0,
            head=0,
            category=category,
        )
    return tree


# --- thresholds -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("previous", "previous token 87 % [85, 89]"),
        ("next", "next token 87 % [85, 89]"),
        ("self", "token itself 87 % [85, 89]"),
        ("punctuation", "punctuation 87 % [85, 89]"),
    ],
)
def test_a_head_that_attends_to_one_target_is_labelled_with_its_share(target, text):
    tree = with_share(target, 0.87, 0.85, 0.89)
    assert texts(tree) == [text]
    others = [found.labels for place, found in head_labels(tree).items() if place != (0, 0)]
    assert others == [()] * 15


@pytest.mark.parametrize(
    ("target", "threshold"),
    [
        ("previous", 0.5),
        ("next", 0.5),
        ("self", 0.5),
        ("cls", 0.6),
        ("sep", 0.6),
        ("punctuation", 0.6),
    ],
)
def test_the_lower_end_of_the_interval_must_lie_above_the_threshold(target, threshold):
    for low, passed in ((threshold, False), (threshold + 1e-9, True), (threshold - 1e-9, False)):
        tree = norms(with_share(target, 0.95, low, 0.99), 9.0, 9.0, 1.0)
        assert bool(texts(tree)) is passed
        assert with_label(tree, target)[0, 0] == passed


def test_without_an_interval_there_is_no_label():
    tree = with_share("next", 0.99, NONE, NONE)
    assert texts(tree) == []
    assert head_labels(tree)[0, 0].nearly == "attends to the next token, 99 %"


def test_a_head_says_which_number_of_the_control_keeps_a_label_away():
    tree, network = (with_share("next", 0.9, 0.88, 0.92) for _ in range(2))
    assert texts(tree) == ["next token 90 % [88, 92]"]
    own = {name: one.to_dataset() for name, one in network.children.items()}
    untrained = {f"{CONTROL}/untrained/{name}": one for name, one in own.items()}
    nodes = {"/": tree.to_dataset(), **own, f"{CONTROL}/untrained": network.to_dataset()}
    held = xr.DataTree.from_dict({**nodes, **untrained})
    assert texts(held) == []
    said = head_labels(held)[0, 0].nearly
    assert said == "attends to the next token, 90 % [88, 92]; a head without training reaches 90 %"


def test_a_model_whose_heads_are_all_alike_is_labelled_all_the_same():
    tree = quiet_tree()
    plant(tree, "surface", "attention", 0.9, 0.88, 0.92, target="previous")
    assert {found.text for found in head_labels(tree).values()} == {"previous token 90 % [88, 92]"}
    plant(tree, "surface", "attention", 1.0, 1.0, 1.0, target="previous")
    assert {found.text for found in head_labels(tree).values()} == {
        "previous token 100 % [100, 100]"
    }


@pytest.mark.parametrize(
    ("low", "passed"), [(0.9 * 4.28 + 1e-9, True), (0.9 * 4.28, False), (NONE, False)]
)
def test_a_broad_head_is_near_uniform_beyond_its_interval(low, passed):
    high = NONE if np.isnan(low) else 4.2
    where = {"layer": 0, "head": 0, "query": "all"}
    found = texts(plant(quiet_tree(), "entropy", "entropy", 4.1, low, high, **where))
    assert bool(found) is passed
    assert all(text.startswith("broad, near-uniform: 9") for text in found)
    assert all(text.endswith(" of uniform entropy") for text in found)


def test_a_head_of_few_tokens_is_labelled_only_where_no_target_explains_it():
    where = {"layer": 0, "head": 0, "query": "all"}
    tree = plant(quiet_tree(), "entropy", "entropy", 1.0, 0.9, 1.1, **where)
    assert texts(tree) == ["few tokens, no one target: entropy 1.00 [0.90, 1.10] of 4.28 nats"]
    with_share("next", 0.9, 0.88, 0.92, tree=tree)
    assert texts(tree) == ["next token 90 % [88, 92]"]
    wide = plant(quiet_tree(), "entropy", "entropy", 2.0, 1.8, 2.2, **where)
    assert texts(wide) == []  # its upper end is above a half of 4.28


# --- special tokens -------------------------------------------------------------------------


def test_much_weight_and_little_norm_make_a_sink_and_not_a_second_label():
    tree = norms(with_share("sep", 0.80, 0.79, 0.81), 0.5, 0.05, 1.37, spread=0.01)
    assert texts(tree) == [
        "attention sink on [SEP]: weight 0.80 [0.79, 0.81], norm 0.05 [0.04, 0.06]"
    ]
    (label,) = head_labels(tree)[0, 0].labels
    assert (label.kind, label.name, label.analysis) == ("sink", "attention sink on [SEP]", "norms")
    assert (label.value, label.low, label.high, label.n) == (0.80, 0.79, 0.81, 14)


@pytest.mark.parametrize(
    ("sep", "spread", "kind"),
    [(0.49, 0.0, "sink"), (0.5, 0.0, "sep"), (0.49, 0.01, "sep"), (0.4, 0.01, "sink")],
)
def test_a_sink_has_less_than_half_the_norm_of_other_tokens_beyond_both_intervals(
    sep, spread, kind
):
    tree = norms(with_share("sep", 0.80, 0.79, 0.81), 0.5, sep, 1.0, spread=spread)
    assert [label.kind for label in head_labels(tree)[0, 0].labels] == [kind]


def test_two_tokens_that_share_the_weight_are_told_together():
    tree = with_share("sep", 0.46, 0.45, 0.47)
    with_share("cls", 0.44, 0.43, 0.45, tree=tree)
    assert texts(norms(tree, 0.03, 0.05, 1.0, spread=0.01)) == [
        "attention sink on [CLS] and [SEP]: weight 0.90 [0.88, 0.92], norm 0.08 [0.06, 0.10]"
    ]
    assert texts(norms(tree, 0.5, 0.5, 1.0)) == ["[CLS] and [SEP] 90 % [88, 92]"]


def test_one_token_with_nearly_all_the_weight_is_told_alone():
    tree = with_share("sep", 0.75, 0.74, 0.76)
    with_share("cls", 0.2, 0.19, 0.21, tree=tree)
    assert texts(norms(tree, 0.5, 0.5, 1.0)) == ["[SEP] 75 % [74, 76]"]
    assert texts(norms(tree, 0.01, 0.01, 1.0))[0].startswith("attention sink on [SEP]:")


def test_the_tokenizer_says_what_its_tokens_are_called():
    tree = norms(with_share("sep", 0.80, 0.79, 0.81), 9, 9, 1)
    tree.attrs["sep_token"] = "</s>"
    assert texts(tree) == ["</s> 80 % [79, 81]"]
    tree.attrs["sep_token"] = "\x1b[2J"
    assert texts(tree) == ["\ufffd[2J 80 % [79, 81]"]
    tree.attrs["sep_token"] = ""
    assert texts(tree) == ["[SEP] 80 % [79, 81]"]


def test_a_decoder_has_its_first_token_and_no_special_ones():
    tree = quiet_tree(kind=DECODER)
    tree["norms"].dataset = tree["norms"].to_dataset().drop_sel(category="first")  # not known
    plant(tree, "surface", "attention", 0.83, 0.82, 0.84, layer=0, head=0, target="first")
    assert texts(tree) == ["first token 83 % [82, 84]"]
    with_cls = with_share("first", 0.83, 0.82, 0.84)
    assert texts(with_cls) == []


def resting(weight, first, other, *, previous=0.1):
    """A decoder whose first head gives so much to its first token, and the rest of it so."""
    tree = quiet_tree(kind=DECODER)
    plant(
        tree,
        "surface",
        "attention",
        weight,
        weight - 0.01,
        weight + 0.01,
        layer=0,
        head=0,
        target="first",
    )
    for category, value in (("first", first), ("punctuation", 0.0), ("other", other)):
        plant(tree, "norms", "weighted_norm", value, value, value, category=category)
    rest = np.full((4, 4, 1), 0.1)
    rest[0, 0] = previous
    ends = {"": 0.0, "_ci_low": -0.02, "_ci_high": 0.02}
    recorded_surface = tree["surface"].to_dataset().drop_dims("rest_target")
    surface = recorded_surface.assign_coords(rest_target=["previous"])
    for end, apart in ends.items():
        surface[f"rest_attention{end}"] = (("layer", "head", "rest_target"), rest + apart)
    for target in ("self", "punctuation"):
        there = surface[[f"rest_attention{end}" for end in ends]].sel(rest_target=["previous"])
        surface = xr.concat(
            [surface, there.assign_coords(rest_target=[target]) * 0],
            "rest_target",
            data_vars="minimal",
        )
    tree["surface"].dataset = surface
    return tree


def test_a_decoders_head_that_gathers_nothing_from_its_first_token_rests_there():
    assert texts(resting(0.83, 0.05, 1.20)) == [
        "rests on first token: weight 0.83 [0.82, 0.84], norm 0.05 [0.05, 0.05], "
        "4.0 % [4.0, 4.0] of all"
    ]
    (label,) = head_labels(resting(0.83, 0.05, 1.20))[0, 0].labels
    assert (label.kind, label.short) == ("sink", "rests on first token 83 %")


def test_a_decoders_head_that_gathers_from_its_first_token_says_so_and_is_no_sink():
    assert texts(resting(0.83, 0.90, 1.10)) == [
        "first token 83 % [82, 84], 45 % [45, 45] of the norm"
    ]


def test_what_a_sink_does_with_the_rest_is_its_further_label_where_there_is_a_rest():
    told = texts(resting(0.83, 0.05, 1.20, previous=0.7))
    assert told[-1] == "of the rest, previous token 70 % [68, 72]"
    assert len(told) == 2
    assert len(texts(resting(0.95, 0.05, 1.20, previous=0.7))) == 1  # too little is left
    assert len(texts(resting(0.83, 0.05, 1.20, previous=0.51))) == 1  # its lower end is not 0.5
    nothing = changed(resting(0.83, 0.05, 1.20), "surface", rest_attention=NONE)
    assert len(texts(nothing)) == 1


# --- words ----------------------------------------------------------------------------------


def kinds_of_words(values, *, group="features", dim="feature", choice="negation", count=40):
    """A run of one group in which the heads of a 2 × 2 model give so much to one kind."""
    value = np.reshape(values, (2, 2, 1))
    kind = "kind" if group == "features" else dim
    numbers = {"mass": value, "above_reference": value - 0.03}
    dataset = xr.Dataset(
        {
            "attention": (("layer", "head", dim), value, {"units": "probability"}),
            "count": ((dim,), [count]),
            "reference": (("layer", "head", kind), np.full_like(value, 0.03)),
            **{
                name + end: (("layer", "head", kind), number + by)
                for name, number in numbers.items()
                for end, by in (("", 0), ("_ci_low", -0.01), ("_ci_high", 0.01))
            },
        },
        coords={"layer": [0, 1], "head": [0, 1], dim: [choice], kind: [choice]},
    )
    tree = recorded(2, 2, groups=())
    tree[group] = xr.DataTree(dataset)
    return tree


@pytest.mark.parametrize("values", [[0.02, 0.02, 0.42, 0.02], [0.42, 0.42, 0.42, 0.42]])
def test_each_head_that_gives_a_kind_more_than_others_explain_looks_for_it(values):
    tree = kinds_of_words(values)
    assert texts(tree, 1, 0) == ["to negation, 42 % [41, 43], ordinary 3.0 %"]
    labelled = [bool(found.labels) for found in head_labels(tree).values()]
    assert labelled == [value == 0.42 for value in values]


@pytest.mark.parametrize(
    "values", [[0.02, 0.02, 0.105, 0.02], [0.03, 0.02, 0.12, 0.02], [NONE, NONE, NONE, NONE]]
)
def test_nothing_is_said_where_no_head_stands_out(values):
    tree = kinds_of_words(values)
    assert all(found.text == UNLABELLED for found in head_labels(tree).values())


def test_few_inputs_and_runs_without_references_say_nothing():
    few = kinds_of_words([0.02, 0.02, 0.42, 0.02], count=24)
    assert texts(few, 1, 0) == []
    norm = kinds_of_words([0.02, 0.02, 0.42, 0.02])
    norm["features"].dataset = norm["features"].to_dataset().drop_vars("reference")
    assert texts(norm, 1, 0) == []


@pytest.mark.parametrize(("value", "passed"), [(0.28, True), (0.26, False)])
def test_a_quarter_of_the_attention_from_subject_to_verb_is_told(value, passed):
    tree = kinds_of_words(
        [0.1, 0.1, value, 0.1], group="pairs", dim="pair", choice="subject_to_verb"
    )
    assert bool(texts(tree, 1, 0)) is passed


# --- classes of maps ------------------------------------------------------------------------


def test_a_class_that_most_maps_have_is_told_unless_a_target_says_it():
    shares = {(0, 0): {"vertical": (0.9, 0.88, 0.92)}, (0, 1): {"block": (0.6, 0.55, 0.65)}}
    tree = with_maps(quiet_tree(), shares=shares)
    assert texts(tree) == ["vertical: 90 % [88, 92] of maps"]
    assert texts(tree, 0, 1) == ["block: 60 % [55, 65] of maps"]
    told = norms(with_share("sep", 0.80, 0.79, 0.81, tree=tree), 9, 9, 1)
    assert texts(told) == ["[SEP] 80 % [79, 81]"]
    told = with_share("next", 0.80, 0.79, 0.81, tree=tree, head=1)
    assert texts(told, 0, 1) == ["next token 80 % [79, 81]", "block: 60 % [55, 65] of maps"]


def test_the_look_of_maps_is_told_last_and_hides_nothing():
    shares = {(0, 0): {"vertical": (0.9, 0.88, 0.92)}}
    tree = with_share("cls", 0.45, 0.44, 0.46, tree=with_maps(quiet_tree(), shares=shares))
    found = head_labels(norms(tree, 9, 9, 1))[0, 0]
    assert found.text == "vertical: 90 % [88, 92] of maps"
    assert found.closest.sentence.startswith("gives [CLS] 45 % [44, 46] of its attention")
    plant(tree, "entropy", "entropy", 4.1, 4.05, 4.15, layer=0, head=0, query="all")
    found = head_labels(tree)[0, 0]
    assert [label.kind for label in found.labels] == ["broad"]
    assert found.closest is None


@pytest.mark.parametrize(("low", "passed"), [(0.5, False), (0.5001, True), (NONE, False)])
def test_a_class_needs_more_than_half_of_the_maps(low, passed):
    high = NONE if np.isnan(low) else 0.7
    tree = with_maps(quiet_tree(), shares={(0, 0): {"block": (0.6, low, high)}})
    assert bool(texts(tree)) is passed


@pytest.mark.parametrize(("low", "passed"), [(0.5, False), (0.51, True), (NONE, True)])
def test_nothing_is_said_of_maps_that_the_classifier_is_not_sure_of(low, passed):
    tree = with_maps(quiet_tree(), shares={(0, 0): {"block": (0.6, 0.55, 0.65)}})
    high = NONE if np.isnan(low) else 0.7
    plant(tree, "patterns", "confidence", 0.6, low, high, layer=0, head=0)
    assert bool(texts(tree)) is passed
    assert bool(head_labels(tree)[0, 0].closest) is False


def test_the_class_that_takes_what_others_leave_is_no_label():
    shares = {(0, 0): {"heterogeneous": (0.99, 0.98, 1.0)}}
    assert texts(with_maps(quiet_tree(), shares=shares)) == []


# --- all together ---------------------------------------------------------------------------


def test_a_head_without_labels_says_so_and_what_comes_closest():
    tree = with_share("self", 0.31, 0.29, 0.33)
    found = head_labels(tree)[0, 0]
    assert (found.labels, found.text) == ((), UNLABELLED)
    assert found.closest.sentence == (
        "gives the token itself 31 % [29, 33] of its attention, where 5.7 % is ordinary"
    )
    quiet = head_labels(tree)[3, 3]
    assert (quiet.text, quiet.closest) == (UNLABELLED, None)


@pytest.mark.parametrize("groups", [(), ("surface",), ("entropy",), ("norms",), ("divergence",)])
def test_absent_groups_leave_fewer_labels_and_no_error(groups):
    tree = recorded(3, 4, groups=groups)
    assert list(head_labels(tree)) == [(layer, head) for layer in range(3) for head in range(4)]
    if "surface" not in groups and "entropy" not in groups:
        assert {found.text for found in head_labels(tree).values()} == {UNLABELLED}


def test_a_head_of_which_nothing_is_known_is_unlabelled():
    tree = quiet_tree()
    for group, variable in (
        ("surface", "attention"),
        ("entropy", "entropy"),
        ("norms", "weighted_norm"),
    ):
        plant(tree, group, variable, NONE, NONE, NONE, layer=1, head=2)
    assert head_labels(tree)[1, 2].text == UNLABELLED
    assert head_labels(tree)[1, 2].closest is None


def test_labels_come_strongest_first_and_always_the_same():
    tree = recorded(6, 12, groups=BOTH)
    first, again = head_labels(tree), head_labels(tree)
    assert first == again
    sizes = set()
    for found in first.values():
        effects = [label.effect for label in found.labels]
        assert effects == sorted(effects, reverse=True)
        sizes.add(len(effects))
    assert {0, 1, 2} <= sizes


def test_every_label_passes_its_rule_by_its_lower_end():
    tree = surpassing(with_maps(recorded(groups=BOTH)))
    kinds = set()
    for found in head_labels(tree).values():
        for label in found.labels:
            assert label.low > label_rules()[label.kind].least
            kinds.add(label.kind)
        told = {label.kind for label in found.labels}
        for label in found.labels:
            assert not told & set(label_rules()[label.kind].unless)
    assert kinds >= {"previous", "next", "sink", "dependency", "coreference", "frames"}


def test_every_rule_says_its_number_threshold_and_source():
    for rule in label_rules().values():
        words = rule.in_words()
        assert rule.number in words
        assert rule.source in words
        assert not rule.least or f"above {rule.least:g}" in words
        assert set(rule.unless) <= set(label_rules())


def test_views_call_a_head_by_its_labels_in_short():
    tree = quiet_tree((*QUIET, "dependency", "coreference"))
    with_share("next", 0.80, 0.79, 0.81, tree=tree)
    labels, found = run_labels(tree), head_labels(tree)
    assert [len(row) for row in labels] == [4] * 4
    assert "next token 80 %" in labels[0][0]
    for (layer, head), one in found.items():
        assert labels[layer][head] == "; ".join(label.short for label in one.labels[:2])
        assert not any(ending in labels[layer][head] for ending in ("[7", "[8", "baseline"))


def test_short_labels_are_short():
    shorts = {
        label.kind: label.short
        for found in head_labels(surpassing(recorded(groups=BOTH))).values()
        for label in found.labels
    }
    sink = next(
        label
        for found in head_labels(recorded()).values()
        for label in found.labels
        if label.kind == "sink"
    )
    assert sink.name.startswith("attention sink on [")
    assert sink.short == f"{sink.name.removeprefix('attention ')} {100 * sink.value:.0f} %"
    assert re.fullmatch(r"nearby tokens \d\d %", shorts["nearby"])
    assert re.fullmatch(r"coreference \d\d %", shorts["coreference"])


# --- tables ---------------------------------------------------------------------------------


def test_the_table_of_heads_has_a_row_for_each_and_says_unlabelled():
    tree = with_share("next", 0.80, 0.79, 0.81)
    table = head_table(tree)
    assert len(table) == 16
    row = table.iloc[0]
    assert (row["layer"], row["head"], row["name"]) == (0, 0, "L1·H1")
    assert (row["labels"], row["kinds"]) == ("next token 80 % [79, 81]", "next")
    assert set(table["labels"][1:]) == {UNLABELLED}
    assert set(table["kinds"][1:]) == {""}


def test_the_table_of_labels_has_a_row_for_each_with_its_numbers():
    tree = norms(with_share("sep", 0.80, 0.79, 0.81), 0.5, 0.05, 1.37, spread=0.01)
    (row,) = label_table(tree).to_dict("records")
    assert (row["layer"], row["head"], row["rank"], row["kind"]) == (0, 0, 1, "sink")
    assert (row["value"], row["ci_low"], row["ci_high"]) == (0.80, 0.79, 0.81)
    assert row["reference"] == pytest.approx((15 * 0.04 + 0.80) / 16)
    assert row["effect"] == pytest.approx((0.79 - row["reference"]) / (1 - row["reference"]))
    assert (row["n"], row["analysis"]) == (14, "norms")


@pytest.mark.parametrize("made", [quiet_tree, lambda: recorded(2, 3, groups=BOTH)])
def test_both_tables_are_written_also_where_no_head_has_a_label(made, tmp_path):
    tree = made()
    write_tables(tree, tmp_path)
    for name, table in (("heads", head_table(tree)), ("head_labels", label_table(tree))):
        back = pd.read_parquet(tmp_path / f"{name}.parquet")
        pd.testing.assert_frame_equal(back, table, check_dtype=False)
        assert len(pd.read_csv(tmp_path / f"{name}.csv")) == len(table)


def test_hostile_relations_make_labels_that_any_file_can_hold():
    tree = hostile(recorded(6, 12, groups=LANGUAGE))
    for found in head_labels(tree).values():
        found.text.encode("utf-8")
        assert not any(ord(sign) < 32 for sign in found.text)


def test_a_head_that_gives_all_to_a_token_whose_vector_is_nothing_rests_there():
    """No other token adds anything either: the lengths before they are weighted say so."""
    tree = norms(with_share("sep", 1.0, 0.98, 1.0), 0.0, 0.0, 0.0)
    where = {"layer": 0, "head": 0}
    for category, value in (("sep", 0.0), ("other", 2.0)):
        plant(tree, "norms", "value_norm", value, NONE, NONE, category=category, **where)
    (label,) = head_labels(tree)[0, 0].labels
    assert (label.kind, label.about) == ("sink", "sep")
    assert label.sentence.endswith(
        "as its vectors have length 0.00, and those of other tokens 2.00"
    )
    plant(tree, "norms", "value_norm", 1.0, NONE, NONE, category="sep", **where)
    assert [label.kind for label in head_labels(tree)[0, 0].labels] == ["sep"]


@pytest.mark.parametrize(
    ("networks", "labelled"),
    [
        ({"untrained": 0.999}, False),
        ({"untrained": 0.999, "shuffled": 0.5}, True),
        ({"untrained": 0.999, "shuffled": 0.99}, False),
        ({"shuffled": 0.999}, False),
    ],
)
def test_a_freshly_drawn_network_has_no_say_of_what_most_of_its_heads_do(networks, labelled):
    """Any looks broadly; only one that keeps the scale of the trained weights tells heads apart."""
    where = {"layer": 0, "head": 0, "query": "all"}
    tree = plant(quiet_tree(), "entropy", "entropy", 4.27, 4.26, 4.28, **where)
    for name, share in networks.items():
        network = quiet_tree()
        entropy = 4.28 * share
        plant(network, "entropy", "entropy", entropy, NONE, NONE, query="all")
        tree[f"control/{name}"] = network
        tree[f"control/{name}"].attrs |= {"model": name}
    assert bool(texts(tree)) is labelled
