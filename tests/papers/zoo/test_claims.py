"""Is a claim held against the right number, decided at its bound, left unasked where it must?"""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from headscope.claims.verdict import Outcome, Verdict, known, not_asked
from headscope.core.results import Variable, labelled
from headscope.papers.claim_engine import (
    TESTS,
    Bound,
    ClaimOutcome,
    PaperClaim,
    bound_verdict,
    judge,
)
from headscope.papers.quantities import Measure, Measured, PaperRun, PaperRuns, Unmeasured
from headscope.papers.zoo.claims import CLAIMS
from headscope.papers.zoo.measures import MODEL_RUN, depth_curves, depths, middle
from headscope.papers.zoo.outcome import _exceptions, how_many
from headscope.papers.zoo.page import bound_words, cell
from papers.zoo.trees import entropy, model_run, moved, norms, surface

BY_NAME = {claim.key: claim for claim in CLAIMS}
REST = BY_NAME["separator_middle"]
HOLDS, FAILS, CANNOT_TELL, NOT_ASKED = Outcome


def claim(test: str, bound: float) -> PaperClaim:
    return PaperClaim(
        "made", "", "", Measure((), lambda _: Measured()), bound=Bound(test, bound, "")
    )


def number(low: float, value: float, high: float, p: float = math.nan) -> Measured:
    return Measured(value, low, high, count=10, p=p)


def answer(one: PaperClaim, run) -> ClaimOutcome:
    return judge(one, as_asked(run).beside)


def as_asked(run) -> PaperRun:
    return PaperRuns({MODEL_RUN: run}).run(MODEL_RUN)


# --- the data -------------------------------------------------------------------------------


def test_every_claim_has_a_key_of_its_own_a_source_and_a_bound_with_a_source():
    assert len(BY_NAME) == len(CLAIMS) == 34
    for one in CLAIMS:
        assert one.bound.test in TESTS
        assert one.place
        assert one.number
        assert one.bound.by
        assert one.unit in ("share", "points", "heads", "nats", "1")


# --- the verdict at its bound ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "interval", "wanted"),
    [
        ("above", (0.51, 0.6, 0.7), HOLDS),
        ("above", (0.50, 0.6, 0.7), CANNOT_TELL),  # an end on the bound is not beyond it
        ("above", (0.4, 0.45, 0.50), FAILS),
        ("above", (0.4, 0.5, 0.6), CANNOT_TELL),
        ("below", (0.3, 0.4, 0.49), HOLDS),
        ("below", (0.3, 0.4, 0.50), CANNOT_TELL),
        ("below", (0.50, 0.6, 0.7), FAILS),
        ("near", (-0.4, 0.0, 0.4), HOLDS),
        ("near", (-0.4, 0.0, 0.5), CANNOT_TELL),
        ("near", (0.5, 0.6, 0.7), FAILS),
        ("near", (-0.7, -0.6, -0.5), FAILS),
    ],
)
def test_the_whole_interval_decides(test, interval, wanted):
    assert bound_verdict(claim(test, 0.5).bound, number(*interval)).outcome is wanted


def test_without_an_interval_nothing_can_be_told():
    unsure = bound_verdict(claim("above", 0.5).bound, number(math.nan, 0.9, math.nan))
    assert unsure == Verdict(CANNOT_TELL)


def test_what_cannot_be_told_says_what_could_have_been():
    unsure = bound_verdict(claim("above", 0.5).bound, number(0.4, 0.55, 0.8))
    assert unsure.smallest == pytest.approx(0.15)


@pytest.mark.parametrize(("p", "wanted"), [(0.05, HOLDS), (0.051, CANNOT_TELL), (math.nan, HOLDS)])
def test_chance_must_be_beaten_where_a_claim_is_tested_against_it(p, wanted):
    assert bound_verdict(claim("above", 0.0).bound, number(0.1, 0.2, 0.3, p)).outcome is wanted


# --- depth ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "wanted"), [(12, [5, 6, 7, 8, 9]), (6, [3, 4]), (3, [1]), (24, [*range(11, 19)])]
)
def test_the_middle_layers_stand_where_layers_6_to_10_of_12_do(layers, wanted):
    assert middle(layers) == wanted
    assert depths(layers)[0] == 0
    assert depths(layers)[-1] == 1


def test_two_layers_have_no_middle():
    with pytest.raises(Unmeasured, match="too few layers"):
        middle(2)


# --- the numbers ----------------------------------------------------------------------------


def test_attention_to_the_separator_is_that_of_the_middle_layers_with_an_interval_of_its_own():
    share = np.zeros(12)
    share[5:10] = [0.5, 0.6, 0.7, 0.6, 0.6]
    found = answer(REST, model_run(surface=surface(sep=share, cls=0.1, first=0.1, punctuation=0.1)))
    assert found.measured is not None
    assert found.measured.value == pytest.approx(0.6)
    # All heads move together by SHIFTS, so their mean does, and its 95 % is ±0.019.
    assert (found.measured.low, found.measured.high) == pytest.approx((0.581, 0.619), abs=5e-4)
    assert found.outcome is HOLDS


def test_a_model_without_separator_is_not_asked_and_gets_no_zero():
    decoder = model_run(
        stack="decoder", cls="", sep="", surface=surface(first=0.7, punctuation=0.1, previous=0.1)
    )
    found = answer(REST, decoder)
    assert found == ClaimOutcome(REST, not_asked("no separator"))
    assert answer(BY_NAME["first_middle"], decoder).outcome is HOLDS
    curves = depth_curves(as_asked(decoder))
    assert "sep" not in curves
    np.testing.assert_allclose(curves["other"].value, 0.2)


def test_a_decoder_is_not_asked_for_what_it_cannot_see():
    flat = np.full(12, 1.0)
    decoder = model_run(
        stack="decoder",
        cls="<s>",
        sep="",
        surface=surface(next=0.0, first=0.5, cls=0.5, punctuation=0),
        entropy=entropy(flat, 0 * flat),
    )
    for name in ("next_heads", "opening_last"):
        found = answer(BY_NAME[name], decoder)
        assert found.outcome is NOT_ASKED
        assert "decoder" in found.verdict.needs
    assert "entropy_cls" not in depth_curves(as_asked(decoder))


def test_heads_of_a_position_are_counted_with_their_depth():
    share = np.zeros(12)
    share[[1, 3]] = 0.9, 0.51  # in some resamples the second is not above one half
    found = answer(BY_NAME["previous_heads"], model_run(surface=surface(previous=share)))
    assert found.measured is not None
    assert (found.measured.value, found.measured.low, found.measured.high) == (4, 2, 4)
    assert found.measured.detail == "of 24, depth 0.09 to 0.27"


def test_no_head_of_a_position_is_a_number_that_fails_not_a_missing_one():
    found = answer(BY_NAME["next_heads"], model_run(surface=surface(next=0.2)))
    assert found.outcome is FAILS
    assert found.measured is not None
    assert found.measured.value == 0


def test_the_opening_token_of_the_last_layer_is_compared_with_all_tokens_of_that_layer():
    every, cls = np.linspace(3, 2, 12), np.linspace(0, 3.5, 12)
    found = answer(BY_NAME["opening_last"], model_run(entropy=entropy(every, cls)))
    assert found.measured is not None
    assert found.measured.value == pytest.approx(1.5)
    assert found.measured.detail == "[CLS]: 3.50 nats, 88 % of uniform"


def test_early_layers_are_the_first_half():
    every = [3.0] * 6 + [2.0] * 6
    found = answer(BY_NAME["broad_early"], model_run(entropy=entropy(every, every)))
    assert found.measured is not None
    assert found.measured.value == pytest.approx((3 - 2) / 4)


def test_what_comes_from_the_separator_is_its_share_of_the_norm_over_its_share_of_the_weight():
    results = norms(weight=(0.1, 0.6, 0.1, 0.2), norm=(0.5, 0.4, 0.1, 3.0))
    found = answer(BY_NAME["separator_empty"], model_run(norms=results))
    assert found.measured is not None
    assert found.measured.value == pytest.approx((0.4 / 4) / 0.6)
    assert found.outcome is HOLDS


def test_inputs_without_a_separator_say_nothing_of_its_norm():
    results = norms(weight=(0.1, 0.0, 0.1, 0.8), norm=(0.5, 0.0, 0.1, 3.0))
    found = answer(BY_NAME["separator_empty"], model_run(norms=results))
    assert found.verdict.needs == "no separator in the inputs"


@pytest.mark.parametrize(
    ("rho", "wanted"), [(-0.7, HOLDS), (-0.1, CANNOT_TELL), (-0.07, FAILS), (np.nan, NOT_ASKED)]
)
def test_a_negligible_correlation_does_not_cancel(rho, wanted):
    results = norms([0.25] * 4, [1] * 4, cancellation=(0, rho, 0, 0))
    assert answer(BY_NAME["cancel_separator"], model_run(norms=results)).outcome is wanted


def test_an_analysis_that_was_not_run_is_told():
    assert answer(BY_NAME["layers_alike"], model_run()).verdict.needs == "no divergence in its run"


# --- sentences ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        ([HOLDS, HOLDS, NOT_ASKED], "both models"),
        ([HOLDS, FAILS, CANNOT_TELL], "1 of 3 models"),
        ([HOLDS] * 3, "all 3 models"),
        ([FAILS, FAILS], "none of 2 models"),
        ([HOLDS], "the only model asked"),
        ([FAILS], "the only model asked it is not so that"),
    ],
)
def test_models_are_counted_among_those_that_could_be_asked(verdicts, wanted):
    answers = {str(at): ClaimOutcome(REST, Verdict(one)) for at, one in enumerate(verdicts)}
    assert how_many(answers) == wanted


# --- cells ----------------------------------------------------------------------------------


def test_a_cell_of_what_cannot_be_asked_has_a_reason_and_no_number():
    shown = cell(ClaimOutcome(REST, not_asked("no separator")))
    assert (shown.outcome.sign, shown.text, shown.interval) == ("–", "", "")
    assert shown.detail == "no separator"


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("separator_middle", (0.501, 0.524, 0.55), ("52 %", "[50, 55]")),
        ("relation_det", (-0.017, 0.05, 0.118), ("+5.0", "[−1.7, +11.8]")),
        ("previous_heads", (2, 4, 5), ("4", "[2, 5]")),
        ("next_heads", (0, 0, 0), ("0", "")),
        ("frequency_norm", (0.7, 0.745, 0.78), ("0.74", "[0.70, 0.78]")),
    ],
)
def test_a_number_is_written_in_the_unit_of_its_claim(name, given, wanted):
    shown = cell(ClaimOutcome(BY_NAME[name], known(True), number(*given)))
    assert (shown.text, shown.interval) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("separator_middle", "> 50 %"),
        ("cancel_separator", "< −0.1"),
        ("cancel_other", "within ±0.1"),
        ("previous_heads", "> 0 heads"),
        ("relation_det", "> 0 points"),
    ],
)
def test_a_bound_says_where_the_number_must_lie(name, wanted):
    assert bound_words(BY_NAME[name]) == wanted


# --- networks without training ----------------------------------------------------------------


def held_against(own: float, **networks: float) -> ClaimOutcome:
    """The claim on the separator, of a run whose control rests so much on it."""
    run = model_run(surface=surface(sep=own))
    for name, share in networks.items():
        of_network = model_run(surface=surface(sep=share)).tree
        run.tree[f"control/{name}"] = of_network
    return answer(REST, run)


def test_a_claim_that_a_network_without_training_satisfies_too_says_so():
    found = held_against(0.9, untrained=0.4, shuffled=0.7)
    assert found.outcome is HOLDS
    assert list(found.untrained) == ["shuffled"]
    assert found.untrained_value == pytest.approx(0.7)
    assert cell(found).untrained == "70 %"
    assert _exceptions(REST, {"bert": found}) == " (also in an untrained network of bert: 70 %)"


def test_a_network_without_training_is_judged_as_the_model_is():
    unsure = held_against(0.9, shuffled=0.51)  # 0.5 lies in its interval
    assert (unsure.untrained, unsure.beyond.outcome) == ({}, CANNOT_TELL)
    assert cell(unsure).untrained == ""
    assert held_against(0.9, shuffled=0.1).beyond.holds
    assert held_against(0.4, shuffled=0.9).beyond.outcome is NOT_ASKED  # a claim that does not hold
    assert held_against(0.9).beyond.outcome is NOT_ASKED  # no control


# --- neurons --------------------------------------------------------------------------------


def neurons(rho, bag) -> xr.Dataset:
    """Correlations [quantity, target] over heads, and how far all heads are a bag of words."""
    variables = {
        "rank_correlation": Variable(moved(rho), ("quantity", "target"), "ρ", "1", "made"),
        "bag_of_words": Variable(moved(np.full((12, 2), bag)), ("layer", "head"), "b", "1", "made"),
    }
    targets = ("sep", "next", "previous", "own_segment")
    return labelled(
        variables, coords={"quantity": ("effective", "position_overlap"), "target": targets}
    )


def test_what_neurons_go_with_is_read_with_its_sign():
    rho = [[-0.5, 0.4, 0.0, -0.6], [0.6, -0.05, 0.0, -0.3]]
    looks = surface(sep=0.5, next=0.2)
    run = model_run(surface=looks, neurons=neurons(rho, 0.4))
    answers = {one.key: answer(one, run) for one in CLAIMS if one.key.startswith("neurons_")}
    assert {key.removeprefix("neurons_"): one.outcome for key, one in answers.items()} == {
        "sep_few": HOLDS,
        "sep_fixed": HOLDS,
        "bag_few": HOLDS,
        "bag_fixed": FAILS,
        "next_many": HOLDS,
        "next_changing": FAILS,  # −0.05 is next to nothing
    }
    assert answers["neurons_sep_fixed"].measured.n == "24 heads"
    single = model_run(surface=looks, neurons=neurons(rho, np.nan))
    assert "one sentence" in answer(BY_NAME["neurons_bag_few"], single).verdict.needs
    decoder = model_run(surface=looks, neurons=neurons(rho, np.nan), stack="decoder", sep="")
    for key, lacks in (("next_many", "a decoder does not see"), ("sep_few", "no separator")):
        assert lacks in answer(BY_NAME[f"neurons_{key}"], decoder).verdict.needs
