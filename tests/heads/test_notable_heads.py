"""Are heads named for what they do, in the right words, order and variety?"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import entropy

from headscope.claims.head_labels import alike, all_claims, telling_heads, with_label
from headscope.claims.head_metrics import head_metrics
from headscope.claims.headline import unclaimed_words
from headscope.core.head_names import HeadNames
from headscope.report.heads import telling
from recorded import ALONE, BOTH, DECODER, changed, recorded, with_maps

QUIET = ("surface", "entropy", "norms")


def plant(tree, group, variable, value, low, high, **where):
    """Writes one estimate into a copy of a group; entropies also as shares of the uniform one."""
    dataset = tree[group].to_dataset().copy(deep=True)
    for name, number in (
        (variable, value),
        (f"{variable}_ci_low", low),
        (f"{variable}_ci_high", high),
    ):
        dataset[name].loc[where] = number
        if variable == "entropy":
            dataset[f"relative_{name}"].loc[where] = number / float(dataset["uniform"])
    tree[group].dataset = dataset
    return tree


def quiet_tree(groups=QUIET, **more):
    """A run in which no head stands out: every share the same, every entropy in the middle."""
    return _quiet(groups, tuple(more.items())).copy(deep=True)


@cache
def _quiet(groups, more):
    tree = changed(recorded(4, 4, groups, **dict(more)), "entropy", uniform=4.28)
    for variable, dim in (("attention", "target"), ("word_attention", "word_kind")):
        for choice in tree["surface"][dim].values:
            if np.isfinite(tree["surface"][variable].sel({dim: choice})).any():
                plant(tree, "surface", variable, 0.04, 0.03, 0.05, **{dim: choice})
    return plant(tree, "entropy", "entropy", 3.0, 2.9, 3.1)


def test_a_planted_previous_token_head_is_told_in_plain_words():
    tree = plant(
        quiet_tree(), "surface", "attention", 0.87, 0.85, 0.89, layer=2, head=1, target="previous"
    )
    first, *rest = telling_heads(tree)
    assert (first.layer, first.head, first.kind) == (2, 1, "previous")
    assert first.sentence == "attends to the previous token, 87 % [85, 89]"
    assert HeadNames(()).unit(2 * 4 + 1, 4) == "L3·H2"
    assert rest == []


def test_the_effect_is_the_way_from_ordinary_to_the_most_there_could_be():
    tree = plant(
        quiet_tree(), "surface", "attention", 0.87, 0.85, 0.89, layer=2, head=1, target="previous"
    )
    reference = (15 * 0.04 + 0.87) / 16  # the mean head; uniform attention would give 1/72
    (claim,) = telling_heads(tree)
    assert claim.effect == pytest.approx((0.85 - reference) / (1 - reference))
    assert claim.reference == pytest.approx(reference)


def test_a_wide_interval_counts_less_than_a_narrow_one():
    tree = quiet_tree()
    plant(tree, "surface", "attention", 0.80, 0.60, 0.95, layer=0, head=0, target="next")
    plant(tree, "surface", "attention", 0.75, 0.73, 0.77, layer=3, head=3, target="next")
    (row,) = telling_heads(tree)
    assert [(claim.layer, claim.head) for claim in alike(tree, row)] == [(3, 3), (0, 0)]


def test_a_broad_head_is_told_against_uniform_attention():
    tree = plant(quiet_tree(), "entropy", "entropy", 4.1, 4.05, 4.15, layer=0, head=2, query="all")
    (claim,) = telling_heads(tree)
    assert claim.sentence == "attends broadly: entropy 4.10 [4.05, 4.15] of 4.28 nats"


def test_a_sink_is_told_by_weight_and_norm():
    tree = plant(
        quiet_tree(), "surface", "attention", 0.81, 0.79, 0.83, layer=1, head=0, target="sep"
    )
    plant(tree, "norms", "weighted_norm", 0.05, 0.04, 0.06, layer=1, head=0, category="sep")
    plant(tree, "norms", "weighted_norm", 1.37, 1.32, 1.42, layer=1, head=0, category="other")
    (claim,) = telling_heads(tree)
    assert claim.sentence == (
        "rests 81 % [79, 83] of its attention on [SEP], yet what [SEP] adds has norm "
        "0.05 [0.04, 0.06], against 1.37 [1.32, 1.42] from other tokens"
    )


def test_a_separator_head_that_contributes_is_no_sink():
    tree = plant(
        quiet_tree(), "surface", "attention", 0.81, 0.79, 0.83, layer=1, head=0, target="sep"
    )
    plant(tree, "norms", "weighted_norm", 1.0, 0.9, 1.1, layer=1, head=0)
    (claim,) = telling_heads(tree)
    assert claim.sentence == "attends to [SEP], 81 % [79, 83]"


def test_a_share_below_one_half_is_claimed_beside_what_is_ordinary_and_makes_no_telling_head():
    tree = plant(
        quiet_tree(), "surface", "attention", 0.31, 0.29, 0.33, layer=1, head=1, target="self"
    )
    (claim,) = all_claims(tree)
    assert claim.sentence == (
        "gives the token itself 31 % [29, 33] of its attention, where 5.7 % is ordinary"
    )
    assert telling_heads(tree) == []


def test_no_head_is_told_twice():
    told = [(claim.layer, claim.head) for claim in telling_heads(recorded(), count=100)]
    assert len(told) == len(set(told))


def test_heads_with_the_same_label_share_a_row_and_a_rare_label_stands_before_a_common_one():
    tree = quiet_tree()
    for layer in range(4):
        for head in range(2):
            plant(
                tree,
                "surface",
                "attention",
                0.9 + layer / 100,
                0.89,
                0.95,
                layer=layer,
                head=head,
                target="sep",
            )
    plant(tree, "surface", "attention", 0.55, 0.54, 0.56, layer=3, head=3, target="previous")
    rare, common = telling_heads(tree)
    assert (rare.kind, common.kind) == ("previous", "sink")
    assert common.effect > rare.effect  # by effect, eight sinks stood before it
    assert len(alike(tree, common)) == 8
    assert {(one.layer, one.head) for one in alike(tree, common)} == {
        (layer, head) for layer in range(4) for head in range(2)
    }
    assert alike(tree, common)[0] == common
    last = alike(tree, common)[-1]
    assert alike(tree, last)[0] == last  # the claim itself first
    row = telling(tree)[1]
    assert row["same"].startswith("8 heads have this label, 90 % to 93 %: ")
    assert row["same"] == row["more"][0]
    assert telling(tree)[0]["same"] == ""


def test_surprise_is_rarity_and_departure_in_bits():
    tree = quiet_tree()
    for head in (0, 1):
        plant(tree, "surface", "attention", 0.8, 0.75, 0.85, layer=1, head=head, target="next")
    (claim,) = telling_heads(tree)
    ordinary = (14 * 0.04 + 2 * 0.8) / 16
    apart = entropy([0.75, 0.25], [ordinary, 1 - ordinary], base=2)  # scipy's, of distributions
    assert claim.surprise == pytest.approx(np.log2(16 / 2) + apart)
    held = replace(claim, control=0.6)  # a head without training does so too
    assert held.departure == pytest.approx(entropy([0.75, 0.25], [0.6, 0.4], base=2))
    assert replace(claim, control=0.01).departure == claim.departure
    assert replace(claim, reference=0.9).departure == 0  # nearly all heads do
    assert np.isfinite(replace(claim, reference=0.0).departure)


def test_at_most_two_rows_of_a_kind_stand_before_each_other_kind_had_one():
    shares = {(0, 3): {"vertical": (0.9, 0.88, 0.92)}}  # a head without another label
    tree = with_maps(recorded(groups=BOTH), shares=shares)
    told = [claim.kind for claim in telling_heads(tree, count=100)]
    kinds = set(told)
    whole = next(at for at in range(len(told)) if set(told[: at + 1]) == kinds)
    assert max(map(told[:whole].count, kinds)) <= 2
    assert told[whole] == "vertical"  # what says least of a head comes last


def test_an_unremarkable_model_has_nothing_to_tell():
    assert telling_heads(quiet_tree()) == []


def test_a_decoder_is_told_by_its_first_token_and_never_by_missing_specials():
    tree = recorded(6, 12, kind=DECODER)
    plant(tree, "surface", "attention", 0.83, 0.82, 0.84, layer=0, head=0, target="first")
    kinds = {kind for claim in all_claims(tree) for kind in (claim.kind, claim.about)}
    assert "first" in kinds
    assert not kinds & {"cls", "sep"}


def test_an_encoder_is_told_by_its_classification_token_not_by_position():
    assert "first" not in {claim.kind for claim in all_claims(recorded())}


def test_a_single_document_gives_sentences_without_intervals_and_no_label():
    tree = recorded(kind=ALONE)
    sentences = [claim.sentence for claim in all_claims(tree)]
    assert sentences
    assert telling_heads(tree) == []
    assert unclaimed_words(tree) == (
        "Values are shown, and nothing is claimed of any head: a label needs an interval, an "
        "interval at least 5 documents, and this run read 1 document."
    )
    assert unclaimed_words(recorded()) == ""
    assert not any("nan" in sentence or "[9" in sentence for sentence in sentences)


@pytest.mark.parametrize("groups", [(), ("entropy",), ("surface",), ("norms",), ("divergence",)])
def test_missing_groups_leave_fewer_claims_and_no_error(groups):
    tree = recorded(3, 4, groups=groups)
    assert len(telling_heads(tree)) <= 12
    assert with_label(tree, "previous").shape == (3, 4)


def test_every_number_per_head_is_found_once_and_named():
    metrics = head_metrics(recorded(2, 3))
    keys = [metric.key for metric in metrics]
    assert len(keys) == len(set(keys))
    assert {"surface.attention.previous", "norms.value_norm_cv"} <= set(keys)
    assert all(metric.estimate.value.shape == (2, 3) and metric.label for metric in metrics)
    assert all(metric.n == 14 for metric in metrics)
