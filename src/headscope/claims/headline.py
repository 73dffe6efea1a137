"""The first sentence on a run: how many heads stand out against untrained networks, by what.

It speaks of the questions that were asked, and of no other. That a model looks untrained is said
only where COMMON questions or more ran for which nearly every trained model has labels
(`Question.common`): of a narrow question a trained model may well have none.
"""

import math

import xarray as xr

from headscope.claims.control import controls
from headscope.claims.head_labels import all_claims, head_labels
from headscope.claims.question import Question, in_run, questions
from headscope.claims.reading import Reading
from headscope.claims.verdict import Verdict, known, not_asked
from headscope.core.intervals import FEWEST
from headscope.core.results import counted, derived, documents

NEARLY_NOTHING = 0.05  # of all heads: chance alone labels as many
COMMON = 2  # ours: questions that tell a model without training only together
FEWEST_HEADS = 20  # ours: of fewer, a trained model may have none with a label
LISTED = 4  # questions that a sentence names
NO_CONTROL = (
    "No network without training was read beside this one: what a label says may hold of such a "
    "network, too."
)
AGAINST = "against networks without training that read a sample of the same inputs"


def headline(tree: xr.DataTree) -> str:
    """How many heads stand out from the control, and by what; else why none is said to."""
    if said := unclaimed_words(tree):
        return said
    labelled, of = labelled_heads(tree)
    if not asked_for_labels(tree):
        return f"Nothing that was asked here labels heads; {_listed(_common())} would."
    if not controls(tree):
        return NO_CONTROL if labelled else ""
    stand = "stands" if labelled <= 1 else "stand"
    verdict = is_trained(tree)
    words = f"{labelled or 'none'} of its {of} heads {stand} out {AGAINST}"
    if verdict.fails:
        return f"This looks like an untrained model: by {asked_words(tree)}, {words}."
    beside = f" Whether it is trained, this cannot tell: {verdict.needs}." if not labelled else ""
    leads = _leads(tree) if labelled else []  # of a network like any other, nothing more
    return " ".join([f"By {asked_words(tree)}, {words}.{beside}", *leads])


def _leads(tree: xr.DataTree) -> list[str]:
    """What questions say beside the number of labels (`Question.lead`)."""
    leads = [Reading(tree, one).said(one.part("lead", "")) for one in in_run(tree)]
    return [said for said in leads if said]


@derived
def is_trained(tree: xr.DataTree) -> Verdict:
    """Whether more heads have labels than by chance; `not asked` without a control, or without
    questions that label nearly every trained model.
    """
    if not controls(tree):
        return not_asked("it takes a control")
    labelled, of = labelled_heads(tree)
    if labelled > NEARLY_NOTHING * of:
        return known(True)
    if sum(question.common for question in asked_for_labels(tree)) < COMMON:
        return not_asked(f"it takes two of {_listed(_common())}")
    return known(False) if of >= FEWEST_HEADS else not_asked("it takes more heads")


def looks_untrained(tree: xr.DataTree) -> bool:
    """Whether hardly any head stands out from the control, by questions that could show it."""
    return not unclaimed_words(tree) and is_trained(tree).fails


def labelled_heads(tree: xr.DataTree) -> tuple[int, int]:
    """The number of heads with a label, and the number of heads."""
    heads = head_labels(tree).values()
    return sum(bool(one.labels) for one in heads), len(heads)


def unclaimed_words(tree: xr.DataTree) -> str:
    """Why no head has a label, if because no number has an interval; else ''."""
    claims = all_claims(tree)
    if not claims or any(math.isfinite(claim.low) for claim in claims):
        return ""
    n, what = documents(tree), counted(tree)
    read = f"{n} {what.removesuffix('s') if n == 1 else what}"
    why = f"this run read {read}" if n < FEWEST else f"this run of {read} kept none apart"
    return (
        f"Values are shown, and nothing is claimed of any head: a label needs an interval, an "
        f"interval at least {FEWEST} {what}, and {why}."
    )


def asked_for_labels(tree: xr.DataTree) -> list[Question]:
    """The questions of a run that make claims about heads."""
    return [question for question in in_run(tree) if question.claims is not None]


def asked_words(tree: xr.DataTree) -> str:
    """Those questions in words: `surface and norms`, `10 questions`."""
    names = [question.name for question in asked_for_labels(tree)]
    return _listed(names) if len(names) <= LISTED else f"{len(names)} questions"


def _common() -> list[str]:
    return [question.name for question in questions() if question.common]


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
