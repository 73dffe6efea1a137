"""The labels of every head, each with its evidence, and the heads that tell most of the model.

Questions make claims about heads (`Question.claims`). A claim that passes the rule of its kind
(`Question.rules`) is a label, if its number departs from what the control of the run shows: the
lower end of its interval lies above the value of every head of every network without training, by
a point or more, which corrects for how many heads are looked at. Report, tables, views and the card
of a head take their words from here.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import xarray as xr

from headscope.core.claim import Claim, LabelRule, rank
from headscope.core.control import controls
from headscope.core.intervals import FEWEST
from headscope.core.question import in_run, parts
from headscope.core.results import counted, derived, documents, shape

UNLABELLED = "unlabelled"
MOST = 4  # ours: labels of one head
IN_VIEWS = 2  # labels of a head where there is little room
NEARLY_NOTHING = 0.05  # of all heads: chance alone labels as many
REPEAT = 0.85  # ours: what a label counts after one of its kind is taken


@dataclass(frozen=True)
class HeadLabels:
    """The labels of one head.

    labels   the strongest first, MOST at most; none: the head is unlabelled
    closest  of a head without labels, or with one about its maps alone: the strongest claim that
             passes no rule, or does not depart from the control
    """

    labels: tuple[Claim, ...] = ()
    closest: Claim | None = None

    @property
    def text(self) -> str:
        """All labels with their numbers, or `unlabelled`."""
        return "; ".join(label.label for label in self.labels) or UNLABELLED

    @property
    def main(self) -> Claim | None:
        """The strongest label; where there is none, the claim that comes closest."""
        return self.labels[0] if self.labels else self.closest


def label_rules() -> dict[str, LabelRule]:
    """Kind of a claim -> the rule by which it becomes a label, of all questions."""
    return {kind: rule for rules in parts("rules") for kind, rule in rules.items()}


@derived
def all_claims(tree: xr.DataTree) -> list[Claim]:
    """The claims of all questions, several per head, without those that another one replaces; each
    with the largest value of the same claim among the heads of the control.
    """
    claims = [claim for claims_of in parts("claims") for claim in claims_of(tree)]
    replaced = {(claim.layer, claim.head, claim.replaces) for claim in claims if claim.replaces}
    kept = [claim for claim in claims if (claim.layer, claim.head, claim.kind) not in replaced]
    most = dict[tuple[str, str], float]()
    for claim in (claim for network in controls(tree) for claim in all_claims(network)):
        said = claim.kind, claim.name
        most[said] = max(most.get(said, claim.value), claim.value)
    return [replace(one, control=most.get((one.kind, one.name), math.nan)) for one in kept]


@derived
def head_labels(tree: xr.DataTree) -> dict[tuple[int, int], HeadLabels]:
    """(layer, head) -> its labels, the largest effect first, for every head, in order."""
    layers, heads = shape(tree)
    rules = label_rules()
    claims: dict[tuple[int, int], list[Claim]] = {
        (layer, head): [] for layer in range(layers) for head in range(heads)
    }
    for claim in sorted(all_claims(tree), key=rank):
        claims[claim.layer, claim.head].append(claim)
    return {place: _of_one(about, rules) for place, about in claims.items()}


def run_labels(tree: xr.DataTree) -> list[list[str]]:
    """[layer][head] in a few words, such as `direct object → verb 68 %`; '' for unlabelled."""
    labels, (layers, heads) = head_labels(tree), shape(tree)
    return [
        ["; ".join(c.short for c in labels[layer, head].labels[:IN_VIEWS]) for head in range(heads)]
        for layer in range(layers)
    ]


def unclaimed_words(tree: xr.DataTree) -> str:
    """Why no head has a label, where that is because no number has an interval; else ''."""
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


def untrained_words(tree: xr.DataTree) -> str:
    """How many heads depart from the control, in a sentence; '' where none was asked or read, or
    where nothing can be claimed.
    """
    asked = any(question.claims for question in in_run(tree))
    if not asked or not controls(tree) or unclaimed_words(tree):
        return ""
    labelled, of = _labelled(tree)
    does = "does" if labelled == 1 else "do"
    what = "that no head of a network without training does on a sample of the same inputs"
    if looks_untrained(tree):
        many = labelled or "none"
        return (
            f"This looks like an untrained model: {many} of its {of} heads {does} anything {what}."
        )
    return f"{labelled} of its {of} heads {does} something {what}."


def looks_untrained(tree: xr.DataTree) -> bool:
    """Whether hardly a head departs from the run's control; False without one."""
    labelled, of = _labelled(tree)
    return bool(controls(tree)) and labelled <= NEARLY_NOTHING * of


def _labelled(tree: xr.DataTree) -> tuple[int, int]:
    heads = head_labels(tree).values()
    return sum(bool(one.labels) for one in heads), len(heads)


def telling_heads(tree: xr.DataTree, *, count: int = 20) -> list[Claim]:
    """The strongest labels of the `count` most telling heads, most telling first; one per head,
    fewer if fewer are labelled.

    Heads are taken one after the other, each time the one of largest effect, where each head
    already taken with the same kind of label makes a further one count 15 % less: the sixth
    separator sink tells less than the first head that does something else. The list is then ordered
    by effect alone; ties go to the lower layer, then the lower head.
    """
    strongest = [one.labels[0] for one in head_labels(tree).values() if one.labels]
    waiting, chosen, taken = sorted(strongest, key=rank), list[Claim](), Counter[str]()
    while waiting and len(chosen) < count:
        # max keeps the first of equals.
        claim = max(waiting, key=lambda claim: claim.effect * REPEAT ** taken[claim.kind])
        waiting.remove(claim)
        chosen.append(claim)
        taken[claim.kind] += 1
    return sorted(chosen, key=rank)


def _of_one(claims: Sequence[Claim], rules: Mapping[str, LabelRule]) -> HeadLabels:
    def is_label(claim: Claim) -> bool:
        return rules[claim.kind].passes(claim) and claim.departs

    passing = list(filter(is_label, claims))
    kinds = {claim.kind for claim in passing}
    telling = {kind for kind in kinds if not rules[kind].last}
    kept, taken = list[Claim](), Counter[str]()
    for claim in passing:
        rule = rules[claim.kind]
        said = telling if rule.last else kinds.intersection(rule.unless)
        if not said and taken[claim.kind] < rule.most:
            kept.append(claim)
            taken[claim.kind] += 1
    if telling:
        return HeadLabels(tuple(kept[:MOST]))
    failing = (claim for claim in claims if not is_label(claim))
    return HeadLabels(tuple(kept), next(failing, None))
