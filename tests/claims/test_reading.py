"""Is what plans say what the numbers of a run say?"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from headscope.claims.plan import ClaimPlan, LabelRule
from headscope.claims.question import Question, rules_of
from headscope.claims.reading import Reading, claims_of
from headscope.errors import InputError

RULE = LabelRule("large", number="its share", least=0.5, source="ours")
VALUES = np.array([[[0.9, 0.2], [0.1, 0.4]]])  # [layer, head, kind]
LARGE = ClaimPlan(
    kind="large",
    rule=RULE,
    share="share",
    each=lambda run: [{"kind": "b.c"}, {"kind": "a"}],
    name="large, {kind}",
    label="large {share:%}",
    sentence="has {share:%} of {kind}, {usual:.2f} is usual",
)


def made(*plans: ClaimPlan) -> Question:
    return Question(name="made", package="made", claims=plans)


@pytest.fixture
def tree() -> xr.DataTree:
    dims = ("layer", "head", "kind")
    numbers = {"share": VALUES, "share_ci_low": VALUES - 0.05, "share_ci_high": VALUES + 0.05}
    data = xr.Dataset({name: (dims, values) for name, values in numbers.items()})
    data = data.assign({"nats": ((), 2.5), "none": (dims[:2], np.full((1, 2), np.nan))})
    run = xr.DataTree.from_dict({"made": data.assign_coords(kind=["a", "b.c"])})
    run.attrs |= {"layers": 1, "heads": 2, "documents": 7, "tokens": 70, "cls_token": "<s>"}
    return run


@pytest.mark.parametrize(
    ("template", "of_all", "of_the_first"),
    [
        ("{share.a:%}", "50 %", "90 % [85, 95]"),
        ("{share.b.c:%}", "30 %", "20 % [15, 25]"),
        ("{share.a}", "0.50", "0.90 [0.85, 0.95]"),
        ("{share.a:.3f}", "0.500", "0.900"),
        ("{share.a:probability}", "50 %", "90 %"),
        ("{nats}, {nats:nats}", "2.50, 2.50", "2.50, 2.50"),
        ("{none:%}", "–", "–"),
        ("{over}; {over:share}", "n = 7 documents, 70 tokens; n = 7 documents, 70 tokens", None),
        ("{cls} and {word}", "<s> and it", "<s> and it"),
    ],
)
def test_a_template_gives_the_mean_of_heads_or_the_number_of_one(
    tree, template, of_all, of_the_first
):
    run = Reading(tree, made())
    assert run.words(template, word="it") == of_all
    assert run.words(template, (0, 0), word="it") == (of_the_first or of_all)


def test_words_can_be_what_a_named_function_says_and_a_name_that_leads_nowhere_is_refused(tree):
    run = Reading(tree, Question(name="made"))
    assert run.words("builtins:type") is Reading
    with pytest.raises(InputError, match="'made' names a part 'math:nothing'"):
        run.words("math:nothing")


def test_a_number_is_there_where_any_head_has_it(tree):
    run = Reading(tree, made())
    assert run.has("share.a")
    assert not any(map(run.has, ("none", "share.z", "unheard_of")))


def test_a_plan_claims_what_stands_out_choice_by_choice(tree):
    claims = claims_of(made(LARGE), tree)
    assert [(one.head, one.name, one.value) for one in claims] == [
        (1, "large, b.c", 0.4),  # its lower end is surely above the mean of 0.3
        (0, "large, a", 0.9),
    ]
    assert claims[1].sentence == "has 90 % [85, 95] of a, 0.50 is usual"
    assert (claims[1].reference, claims[1].n, claims[1].analysis) == (0.5, 7, "made")
    assert rules_of(made(LARGE)) == {"large": RULE}


def test_of_another_run_the_wanted_claims_are_made_whatever_their_numbers(tree):
    wanted = claims_of(made(LARGE), tree)
    tree["made"].dataset = tree["made"].to_dataset() * 0.1
    assert not claims_of(made(LARGE), tree)
    again = claims_of(made(LARGE), tree, wanted)
    assert [(one.head, one.name) for one in again] == [(one.head, one.name) for one in wanted]


def test_a_question_that_the_run_lacks_claims_nothing(tree):
    assert claims_of(Question(name="other", claims=(LARGE,)), tree) == []
