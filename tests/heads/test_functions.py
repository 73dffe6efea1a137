"""Is a head told for what it knows of language, in plain words, and only where it holds?"""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

from headscope.claims.head_labels import all_claims, head_labels, telling_heads
from headscope.claims.relation_names import arrow, frequent_relations
from headscope.core.confidence import stretch
from recorded import ALONE, BOTH, LANGUAGE, by_norm, claims, hostile, recorded

D, H = "dependent_to_head", "head_to_dependent"


def function_claims(tree):
    """The claims of what heads know of language."""
    return claims(tree, "dependency", "coreference", "frames")


@pytest.mark.parametrize(
    ("label", "direction", "words"),
    [
        ("obj", D, "direct object → verb"),
        ("obj", H, "verb → its direct object"),
        ("dobj", D, "direct object → verb"),
        ("pobj", H, "preposition → object of preposition"),
        ("det", D, "determiner → noun"),
        ("nmod:poss", D, "possessor → noun"),
        ("obl:lmod", D, "oblique (obl:lmod) → verb"),
        ("obl:lmod", H, "verb → its oblique (obl:lmod)"),
        ("依存", D, "‘依存’ → its head"),
        ("依存", H, "head → its ‘依存’"),
        ("", D, "‘’ → its head"),
        ("all", D, "any word → its head"),
    ],
)
def test_relations_are_named_in_words_both_ways(label, direction, words):
    assert arrow(label, direction) == words


def specific(tree, group, *, end="", below=True, at=None, share=None, **numbers):
    """The run in which one cell of a group alone, at these coordinates, is above its reference.

    below    whether all others are put below theirs
    share    the variable, and its value with the ends of its interval
    numbers  `reference`, `above_reference`, … and their ends; what is not there yet is added
    """
    dataset = tree[group].to_dataset().copy(deep=True)
    variable, ends = share
    grid = dataset[variable + end]
    for name in ("reference", "above_reference", "weight_above", "from_others"):
        for limit in ("", "_ci_low", "_ci_high"):
            if below or name + end + limit not in dataset:
                dataset[name + end + limit] = xr.full_like(
                    grid, 0.1 if name == "reference" else -1.0
                )
    numbers |= dict(zip((variable, f"{variable}_ci_low", f"{variable}_ci_high"), ends, strict=True))
    for name, value in numbers.items():
        stem, ci, limit = name.partition("_ci_")
        here = {
            dim: place for dim, place in at.items() if dim in dataset[stem + end + ci + limit].dims
        }
        dataset[stem + end + ci + limit].loc[here] = value
    tree[group].dataset = dataset
    return tree


ABOVE = {
    "reference": 0.40,
    "above_reference": 0.46,
    "above_reference_ci_low": 0.44,
    "above_reference_ci_high": 0.48,
    "weight_above": 0.5,
    "weight_above_ci_low": 0.48,
    "weight_above_ci_high": 0.52,
    "from_others": 0.08,
}


def surpassing(tree):
    """The run, with a head that finds antecedents, one of a relation and one of frames."""
    at, share = {"layer": 1, "head": 1}, ("accuracy", (0.86, 0.85, 0.87))
    of_all = at | {"mention_type": "all"}
    tree = specific(tree, "coreference", share=share, at=of_all, **ABOVE)
    if "frames" in tree.children:
        for end in ("", "_reversed"):
            tree = specific(
                tree, "frames", share=("score", (0.86, 0.85, 0.87)), at=at, end=end, **ABOVE
            )
    if "dependency" in tree.children:
        for relation in ("obj", "nsubj", "det"):
            tree = planted(tree, relation=relation, below=False)
    return tree


def planted(tree=None, *, relation="obj", direction=D, below=True, **more):
    """A run in which L3·H2 alone finds a relation, or finds it too."""
    tree = recorded(3, 4, groups=("dependency",)) if tree is None else tree
    at = {"layer": 2, "head": 1, "relation": relation, "direction": direction}
    numbers = ABOVE | {"baseline": 0.40, "count": 500} | more
    return specific(
        tree, "dependency", share=("accuracy", (0.86, 0.84, 0.88)), at=at, below=below, **numbers
    )


def test_a_syntactic_head_is_told_with_its_interval_beside_offset_and_words_beside():
    """Of so many heads, relations and directions the interval is twice as long as of one."""
    tree = planted()
    (claim,) = function_claims(tree)
    assert (claim.layer, claim.head, claim.kind, claim.about) == (2, 1, "dependency", "obj")
    looked_at = 3 * 4 * 2 * (len(frequent_relations(tree["dependency"].to_dataset())) + 1)
    longer = 0.02 * stretch(looked_at)
    assert (claim.value, claim.low, claim.high) == pytest.approx(
        (0.86, 0.86 - longer, 0.86 + longer)
    )
    ends = f"[{100 * claim.low:.0f}, {100 * claim.high:.0f}]"
    assert claim.sentence == (
        f"direct object → verb, 86 % {ends} of 500 words, fixed offset 40 %, words beside 8.0 %"
    )
    assert claim.short == "direct object → verb 86 %"
    assert claim.effect == pytest.approx((claim.low - 0.40) / (1 - 0.40))


def test_the_other_direction_is_told_the_other_way_round():
    (claim,) = function_claims(planted(direction=H))
    assert claim.sentence.startswith("verb → its direct object, 86 %")


@pytest.mark.parametrize(
    "short",
    [
        {"above_reference_ci_low": 0.15, "above_reference": 0.3},  # one of many
        {"above_reference_ci_low": np.nan},  # there is no interval
        {"count": 24},  # too few words
        {"above_reference": 0.06, "above_reference_ci_low": 0.05},  # hardly above the reference
        {"weight_above": 0.04, "weight_above_ci_low": 0.03},  # it hardly attends to what it finds
    ],
)
def test_nothing_is_told_of_a_head_that_does_not_clearly_beat_its_reference(short):
    assert function_claims(planted(**short)) == []


def test_every_head_that_passes_is_told_whatever_others_do():
    tree = planted()
    again = {"layer": 0, "head": 3, "relation": "obj", "direction": D}
    share = ("accuracy", (0.86, 0.84, 0.88))
    tree = specific(tree, "dependency", share=share, at=again, below=False, **ABOVE)
    assert {(claim.layer, claim.head) for claim in function_claims(tree)} == {(2, 1), (0, 3)}


@pytest.mark.parametrize("relation", ["all", "root", "punct"])
def test_no_head_is_known_by_totals_root_or_punctuation(relation):
    assert function_claims(planted(relation=relation)) == []


@pytest.mark.parametrize(("share", "told"), [((0.86, 0.84, 0.88), 1), ((0.51, 0.49, 0.53), 0)])
def test_a_head_of_any_word_finds_the_head_of_most_words(share, told):
    at = {"layer": 2, "head": 1, "relation": "all_but_root_and_punctuation", "direction": D}
    tree = recorded(3, 4, groups=("dependency",))
    tree = specific(tree, "dependency", share=("accuracy", share), at=at, **ABOVE)
    assert [claim.name for claim in function_claims(tree)] == (
        ["any word but roots and punctuation → its head"] * told
    )


def coreference(*, kind="all", **more):
    """A tree in which one kind of mention alone could have a claim."""
    tree = recorded(6, 12, groups=("coreference",))
    at = {"layer": 1, "head": 1, "mention_type": kind}
    numbers = ABOVE | {"baseline": [0.27, 0.40, 0.35], "count": 1200} | more
    return specific(tree, "coreference", share=("accuracy", (0.86, 0.85, 0.87)), at=at, **numbers)


def test_a_coreference_head_is_told_beside_the_best_rule_and_its_other_words():
    (claim,) = function_claims(coreference())
    assert re.fullmatch(
        r"coreference: antecedent found for 86 % \[8\d, 8\d\] of 1,200 mentions, head match 40 %, "
        r"nearest words that are no mentions 8\.0 %",
        claim.sentence,
    )
    assert claim.effect == pytest.approx((claim.low - 0.40) / (1 - 0.40))


@pytest.mark.parametrize("short", [{"above_reference_ci_low": np.nan}, {"count": 49}])
def test_nothing_is_told_of_a_head_that_does_not_clearly_beat_the_rules(short):
    assert function_claims(coreference(**short)) == []


def test_heads_without_knowledge_get_next_to_no_coreference_claim():
    """Of networks whose heads are noise about the reference; one of many is 3 errors above it."""
    rng, told, before = np.random.default_rng(0), 0, 0
    tree = coreference()
    plain = tree["coreference"].to_dataset()
    for _ in range(300):
        dataset = plain.copy(deep=True)
        value = rng.normal(0.06, 0.03, dataset["above_reference"].shape)
        dataset["above_reference"][...] = value
        dataset["above_reference_ci_low"][...] = value - 1.96 * 0.03
        dataset["weight_above_ci_low"][...] = dataset["weight_above"][...] = 0.5
        tree["coreference"].dataset = dataset
        told += bool(function_claims(tree))
        before += bool((dataset["above_reference_ci_low"] > 0.05).any())
    assert before > 200
    assert told <= 3


def test_a_frame_head_is_told_beside_chance_in_its_direction():
    at, share = {"layer": 5, "head": 4}, ("score", (0.86, 0.85, 0.87))
    tree = specific(recorded(6, 12, groups=("frames",)), "frames", share=share, at=at, **ABOVE)
    tree = specific(tree, "frames", share=share, at=at, end="_reversed")
    (claim,) = function_claims(tree)
    assert (claim.layer, claim.head) == (5, 4)
    assert claim.sentence.startswith("frame element → target, 86 % [")
    assert claim.sentence.endswith(" of its attention, ordinary 40 %")


def test_runs_of_before_there_were_references_say_nothing():
    tree = recorded(6, 12, groups=LANGUAGE)
    for name in ("dependency", "coreference", "frames", "features", "pairs"):
        dataset = tree[name].to_dataset()
        tree[name].dataset = dataset.drop_vars([v for v in dataset if "reference" in str(v)])
    assert {claim.kind for claim in all_claims(tree)} <= {"cls_attention"}


def test_by_weighted_norm_accuracies_say_so():
    judged = function_claims(by_norm(planted())) + function_claims(by_norm(coreference()))
    assert [claim.kind for claim in judged] == ["dependency", "coreference"]
    assert all("(weighted norm)" in claim.sentence for claim in judged)


def test_a_head_has_every_label_of_a_relation_that_it_passes_the_clearest_first():
    tree = surpassing(recorded(6, 12, groups=LANGUAGE))
    several = 0
    for place, found in head_labels(tree).items():
        own = [c for c in function_claims(tree) if (c.layer, c.head) == place]
        for kind in ("dependency", "coreference", "frames"):
            there = sorted((c.effect for c in own if c.kind == kind), reverse=True)
            assert [c.effect for c in found.labels if c.kind == kind] == there
            several += len(there) > 2
    assert several


def test_language_joins_the_other_claims_and_the_telling_heads():
    tree = surpassing(recorded(6, 12, groups=BOTH))
    assert {"dependency", "coreference", "frames"} <= {c.kind for c in all_claims(tree)}
    assert "dependency" in {claim.kind for claim in telling_heads(tree)}


def test_one_document_tells_nothing_of_relations_and_mentions():
    judged = function_claims(recorded(6, 12, kind=ALONE, groups=LANGUAGE))
    assert {claim.kind for claim in judged} <= {"frames"}


def test_hostile_labels_can_be_written():
    for claim in function_claims(hostile(recorded(6, 12, groups=LANGUAGE))):
        claim.sentence.encode("utf-8")
        assert not any(ord(character) < 32 for character in claim.sentence)
