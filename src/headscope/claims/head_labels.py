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

import numpy as np
import xarray as xr

from headscope.claims.claim import LEAST_DEPARTURE, Claim, rank
from headscope.claims.control import controls, is_fresh
from headscope.claims.length_bands import bands, place_of, where_it_holds
from headscope.claims.plan import LabelRule
from headscope.claims.question import questions, rules_of
from headscope.claims.reading import Wanted, claims_of, parts_of
from headscope.core.accumulators import Bools
from headscope.core.results import derived, shape
from headscope.core.wording import percent

UNLABELLED = "unlabelled"
IN_VIEWS = 2  # labels of a head where there is little room
OF_A_KIND = 2  # ours: rows of a kind before each other kind had one


@dataclass(frozen=True)
class HeadLabels:
    """The labels of one head.

    labels   all that pass, the strongest first; none: the head is unlabelled
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
    def nearly(self) -> str:
        """What comes closest to a label; how far the control goes, if only that keeps it away."""
        one = self.closest
        if one is None:
            return ""
        kept = label_rules()[one.kind].passes(one)
        return one.sentence + f"; a head without training reaches {percent(one.control)}" * kept

    @property
    def main(self) -> Claim | None:
        """The label of the greatest surprise; where there is none, the claim that comes closest."""
        return max(self.labels, key=lambda label: label.surprise, default=self.closest)


def label_rules() -> dict[str, LabelRule]:
    """Kind of a claim -> the rule by which it becomes a label, of all questions."""
    return {kind: rule for one in questions() for kind, rule in rules_of(one).items()}


@derived
def all_claims(tree: xr.DataTree) -> list[Claim]:
    """The claims of all questions, several per head, without those that another one replaces; each
    with the largest value of the same claim among the heads of the control.
    """
    claims, of_control = _made(tree), _of_control(tree)
    replaced = {(claim.layer, claim.head, claim.replaces) for claim in claims if claim.replaces}
    return [
        replace(claim, control=of_control.get((claim.kind, claim.name), math.nan))
        for claim in claims
        if (claim.layer, claim.head, claim.kind) not in replaced
    ]


def _made(tree: xr.DataTree, among: Wanted = None) -> list[Claim]:
    return [claim for one in questions() for claim in claims_of(one, tree, among)]


def _of_control(tree: xr.DataTree) -> dict[tuple[str, str], float]:
    """(kind, name) of a claim -> its largest value among the heads of the control.

    What most heads do as the architecture draws them, such as to look broadly, tells nothing of
    those whose weights have grown: such a network has no say where another one keeps the scale of
    the trained weights.
    """
    rules, networks = label_rules(), controls(tree)
    most = dict[tuple[str, str], float]()
    for network in networks:
        fresh = is_fresh(network) and not all(map(is_fresh, networks))
        values = dict[tuple[str, str], list[float]]()
        for claim in _made(network):
            values.setdefault((claim.kind, claim.name), []).append(claim.value)
        for said, of_heads in values.items():
            passing = sum(value > rules[said[0]].least for value in of_heads)
            if not (fresh and 2 * passing > math.prod(shape(network))):
                most[said] = max(most.get(said, -math.inf), *of_heads)
    return most


def open_labels(tree: xr.DataTree) -> dict[Claim, float]:
    """Claims whose intervals do not tell whether they are labels, each with the threshold that its
    interval contains: the rule's, its reference where the rule has none, or what the control
    reaches.
    """
    rules, of_control = label_rules(), _of_control(tree)

    def threshold(claim: Claim) -> float:
        least = rules[claim.kind].least or claim.reference
        control = of_control.get((claim.kind, claim.name), -math.inf)
        return max(least, control + LEAST_DEPARTURE)

    every = {claim: threshold(claim) for claim in _made(tree, "all")}
    return {claim: at for claim, at in every.items() if claim.low <= at < claim.high}


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
    chosen = {place: _of_one(about, rules) for place, about in claims.items()}
    having = Counter(kind for one in chosen.values() for kind in {c.kind for c in one.labels})
    rarity = {kind: math.log2(layers * heads / number) for kind, number in having.items()}
    where = where_labels_hold(tree, [label for one in chosen.values() for label in one.labels])

    verdicts = {place: words for part in parts_of(tree, "trials") for place, words in part.items()}

    def whole(claim: Claim) -> Claim:
        named = claim.only(where[claim]) if where[claim] else claim
        verdict = verdicts.get((claim.layer, claim.head, claim.kind, claim.name))
        named = named.tried(*verdict) if verdict else named
        return replace(named, surprise=rarity[claim.kind] + claim.departure)

    return {
        place: replace(one, labels=tuple(map(whole, one.labels))) for place, one in chosen.items()
    }


def where_labels_hold(tree: xr.DataTree, labels: Sequence[Claim]) -> dict[Claim, str]:
    """In inputs of which lengths each holds, in words; "" where in all that the run has read."""
    rules = label_rules()
    of_bands = {
        name: {place_of(claim): claim for claim in _made(band, labels)}
        for name, band in bands(tree).items()
    }
    return {label: where_it_holds(label, rules[label.kind], of_bands) for label in labels}


def run_labels(tree: xr.DataTree) -> list[list[str]]:
    """[layer][head] in a few words, such as `direct object → verb 68 %`; '' for unlabelled."""
    labels, (layers, heads) = head_labels(tree), shape(tree)
    return [
        ["; ".join(c.short for c in labels[layer, head].labels[:IN_VIEWS]) for head in range(heads)]
        for layer in range(layers)
    ]


def with_label(tree: xr.DataTree, *kinds: str) -> Bools:
    """[layer, head] whether a head has a label of these kinds, or one that replaces them."""
    said = [
        {part for c in one.labels for part in (c.kind, c.replaces)}
        for one in head_labels(tree).values()
    ]
    return np.reshape([not one.isdisjoint(kinds) for one in said], shape(tree))


def telling_heads(tree: xr.DataTree, *, count: int = 20) -> list[Claim]:
    """The `count` most telling labels, most telling first: of every label the head of which it is
    most surprising, each head once, by the label that tells most of it; `alike` gives the others.

    Ordered by surprise (see `claims.claim`), labels that say least of a head after the rest, and at
    most OF_A_KIND of a kind before each other kind had one; ties go to the lower layer, then the
    lower head.
    """
    rules = label_rules()
    mains = [one.main for one in head_labels(tree).values() if one.labels and one.main]
    mains.sort(key=lambda claim: (rules[claim.kind].last, -claim.surprise, *rank(claim)))
    first = dict[tuple[str, str], Claim]()
    for claim in mains:
        first.setdefault((claim.kind, claim.name), claim)
    waiting, chosen = list(first.values()), list[Claim]()
    kinds = {claim.kind for claim in waiting}
    while waiting and len(chosen) < count:
        taken = Counter(claim.kind for claim in chosen)
        whole = taken.keys() == kinds
        claim = next(one for one in waiting if whole or taken[one.kind] < OF_A_KIND)
        waiting.remove(claim)
        chosen.append(claim)
    return chosen


def alike(tree: xr.DataTree, claim: Claim) -> list[Claim]:
    """The same label of all heads that have it: the claim itself, then the most surprising ones."""
    labels = [label for one in head_labels(tree).values() for label in one.labels]
    same = [one for one in labels if (one.kind, one.name) == (claim.kind, claim.name)]
    own = claim.layer, claim.head
    return sorted(same, key=lambda one: ((one.layer, one.head) != own, -one.surprise, *rank(one)))


def _of_one(claims: Sequence[Claim], rules: Mapping[str, LabelRule]) -> HeadLabels:
    def is_label(claim: Claim) -> bool:
        return rules[claim.kind].passes(claim) and claim.departs

    passing = list(filter(is_label, claims))
    kinds = {claim.kind for claim in passing}
    telling = {kind for kind in kinds if not rules[kind].last}

    def is_said(rule: LabelRule) -> bool:
        return bool(telling if rule.last else kinds.intersection(rule.unless))

    kept = tuple(claim for claim in passing if not is_said(rules[claim.kind]))
    failing = (claim for claim in claims if not is_label(claim))
    return HeadLabels(kept, None if telling else next(failing, None))
