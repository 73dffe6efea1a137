"""Is a head told for what it knows of language, in plain words, and only where it holds?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.analyses.coreference.claims import claims as of_mentions
from headscope.analyses.dependency.claims import claims as of_relations
from headscope.analyses.frames.claims import claims as of_frames
from headscope.core.head_labels import all_claims, head_labels, telling_heads
from headscope.core.relation_names import arrow
from recorded import ALONE, BOTH, LANGUAGE, by_norm, changed, hostile, recorded

D, H = "dependent_to_head", "head_to_dependent"


def function_claims(tree):
    """The claims of what heads know of language."""
    return [*of_relations(tree), *of_mentions(tree), *of_frames(tree)]


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


def surpassing(tree):
    """The run, with a head that finds antecedents better than the rules do."""
    baseline = {f"baseline{end}": 0.1 for end in ("", "_ci_low", "_ci_high")}
    ahead = {"advantage": 0.4, "advantage_ci_low": 0.3, "advantage_ci_high": 0.5}
    best = {"best_accuracy": 0.6, "held_out": 0.5}
    best |= {"held_out_ci_low": 0.4, "held_out_ci_high": 0.6}
    return changed(tree, "coreference", **baseline, **ahead, **best)


def one_relation(tree, relation, **values):
    """Writes numbers over one relation of a run, and leaves all others without claim."""
    dataset = tree["dependency"].to_dataset().copy(deep=True)
    dataset["advantage_ci_low"][...] = -1.0
    for name, value in values.items():
        dataset[name].loc[{"relation": relation}] = value
    tree["dependency"].dataset = dataset
    return tree


def planted(**more):
    numbers = {
        "best_layer": 2, "best_head": 1, "best_direction": 0, "best_accuracy": 0.91,
        "held_out": 0.86, "held_out_ci_low": 0.84, "held_out_ci_high": 0.88, "baseline": 0.40,
        "advantage_ci_low": 0.4, "count": 500,
    }  # fmt: skip
    tree = recorded(3, 4, groups=("dependency",))
    return one_relation(tree, "obj", **(numbers | more))


def test_a_syntactic_head_is_told_by_its_share_held_out_with_interval_and_baseline():
    (claim,) = function_claims(planted())
    assert (claim.layer, claim.head, claim.kind) == (2, 1, "dependency")
    assert claim.sentence == (
        "direct object → verb, 86 % [84, 88] held out (91 % where the head was chosen), "
        "baseline 40 %"
    )
    assert claim.short == "direct object → verb 86 %"


def test_the_effect_is_the_way_from_the_baseline_to_finding_all():
    (claim,) = function_claims(planted())
    assert claim.effect == pytest.approx((0.84 - 0.40) / (1 - 0.40))
    assert (claim.value, claim.low, claim.high, claim.reference) == (0.86, 0.84, 0.88, 0.40)


def test_the_other_direction_is_told_the_other_way_round():
    (claim,) = function_claims(planted(best_direction=1))
    assert claim.sentence.startswith("verb → its direct object, 86 %")


@pytest.mark.parametrize(
    "short",
    [
        {"advantage_ci_low": 0.0},  # the interval touches 0
        {"advantage_ci_low": np.nan},  # there is no interval
        {"count": 24},  # too few words
        {"held_out": np.nan},
        {"held_out_ci_low": 0.42},  # hardly above the baseline
    ],
)
def test_nothing_is_told_of_a_head_that_does_not_clearly_beat_its_baseline(short):
    assert function_claims(planted(**short)) == []


@pytest.mark.parametrize("relation", ["all", "all_but_root_and_punctuation", "root", "punct"])
def test_no_head_is_known_by_totals_root_or_punctuation(relation):
    tree = recorded(3, 4, groups=("dependency",))
    tree = one_relation(tree, relation, best_accuracy=0.9, baseline=0.1, advantage_ci_low=0.7)
    assert function_claims(tree) == []


def coreference(*, kind="all", **values):
    """A tree in which one kind of mention alone could have a claim, with numbers written over.

    values  name -> number of the kind; `advantage` and its lower end: by the rules in their order
    """
    numbers = {
        "best_accuracy": 0.72, "best_accuracy_ci_low": 0.69, "best_accuracy_ci_high": 0.75,
        "held_out": 0.65, "held_out_ci_low": 0.62, "held_out_ci_high": 0.68,
        "baseline": [0.27, 0.40, 0.35], "advantage": [0.38, 0.25, 0.30],
        "advantage_ci_low": [0.35, 0.22, 0.27], "count": 1200,
    }  # fmt: skip
    tree = recorded(6, 12, groups=("coreference",))
    dataset = tree["coreference"].to_dataset().copy(deep=True)
    dataset["advantage_ci_low"][...] = -1.0
    for name, value in (numbers | values).items():
        dataset[name].loc[{"mention_type": kind}] = value
    tree["coreference"].dataset = dataset
    return tree


def test_a_coreference_head_is_told_as_it_is_held_out_beside_the_best_rule():
    """It was held against the nearest mention, which any head that looks back beats, and with the
    share of the documents that it was chosen on.
    """
    (claim,) = function_claims(coreference())
    assert claim.sentence == (
        "coreference: antecedent found for 65 % [62, 68] of 1,200 mentions held out (72 % where "
        "the head was chosen), head match 40 %"
    )
    assert claim.effect == pytest.approx((0.62 - 0.40) / (1 - 0.40))


@pytest.mark.parametrize(
    "short",
    [
        {"advantage_ci_low": [0.35, -0.01, 0.27]},  # the best rule may be as good
        {"advantage": [0.38, 0.06, 0.30], "advantage_ci_low": [0.35, 0.01, 0.27]},  # one of many
        {"advantage_ci_low": np.nan},
        {"count": 49},
    ],
)
def test_nothing_is_told_of_a_head_that_does_not_clearly_beat_the_best_rule(short):
    assert function_claims(coreference(**short)) == []


def test_a_rule_that_another_one_beats_does_not_matter():
    weak = {"advantage": [0.0, 0.25, 0.30], "advantage_ci_low": [-0.2, 0.22, 0.27]}
    assert len(function_claims(coreference(**weak))) == 1


def test_heads_without_knowledge_get_next_to_no_coreference_claim():
    """Of networks whose advantage is noise about 0, a tenth had a claim, one head in four kinds."""
    rng, told, before = np.random.default_rng(0), 0, 0
    tree = coreference()
    plain = tree["coreference"].to_dataset()
    for _ in range(300):
        dataset = plain.copy(deep=True)
        value = rng.normal(0, 0.03, dataset["advantage"].shape)
        dataset["advantage"][...], dataset["advantage_ci_low"][...] = value, value - 1.96 * 0.03
        dataset["held_out_ci_low"][...], dataset["baseline"][...] = 0.62, 0.40
        tree["coreference"].dataset = dataset
        told += bool(function_claims(tree))
        before += bool((dataset["advantage_ci_low"].sel(system="nearest") > 0).any())
    assert before > 15
    assert told <= 1


def test_a_frame_head_is_told_beside_chance_in_its_direction():
    claims = function_claims(recorded(6, 12, groups=("frames",)))
    first = max(claims, key=lambda claim: claim.effect)
    assert (first.layer, first.head) == (5, 4)
    assert first.sentence.startswith("frame element → target, 23 % [")
    assert " of its attention, chance " in first.sentence


def test_a_frame_head_that_chance_explains_is_not_told():
    tree = recorded(6, 12, groups=("frames",))
    dataset = tree["frames"].to_dataset().copy(deep=True)
    for name in ("p_value", "p_value_reversed"):
        dataset[name][...] = 0.06
    tree["frames"].dataset = dataset
    assert function_claims(tree) == []


def test_by_weighted_norm_accuracies_say_so_and_frames_have_no_scale():
    claims = function_claims(surpassing(by_norm(recorded(6, 12, groups=LANGUAGE))))
    assert {claim.kind for claim in claims} == {"dependency", "coreference"}
    assert all("(weighted norm)" in claim.sentence for claim in claims)


def test_a_head_has_every_label_of_a_relation_that_it_passes_the_clearest_first():
    tree = recorded(6, 12, groups=LANGUAGE)
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
    claims = function_claims(recorded(6, 12, kind=ALONE, groups=LANGUAGE))
    assert {claim.kind for claim in claims} <= {"frames"}


def test_hostile_labels_can_be_written():
    for claim in function_claims(hostile(recorded(6, 12, groups=LANGUAGE))):
        claim.sentence.encode("utf-8")
        assert not any(ord(character) < 32 for character in claim.sentence)
