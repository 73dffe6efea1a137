"""What is this head? One or more labels, each with its evidence, or none: unlabelled.

Results become claims (`claims`), and a claim that passes the rule of its kind (`label_rules`) is a
label. Report, tables, views and the card of a head all take their words from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import xarray as xr

from headscope.core.claim import Claim, rank
from headscope.core.results import shape
from headscope.heads.claims import all_claims
from headscope.heads.label_rules import LOOKS, MOST, MOST_OF_KIND, RULES, passes

UNLABELLED = "unlabelled"
IN_VIEWS = 2  # labels of a head where there is little room


@dataclass(frozen=True)
class HeadLabels:
    """What one head is.

    labels   the strongest first, MOST at most; none: the head is unlabelled
    closest  of a head without labels, or of which only the look of its maps is told: what stands
             out most in it, though it passes no rule
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


def head_labels(tree: xr.DataTree) -> dict[tuple[int, int], HeadLabels]:
    """(layer, head) → its labels, for every head, in order.

    Strongest first: by effect (see `claim`), the same for the same numbers.
    """
    layers, heads = shape(tree)
    made: dict[tuple[int, int], list[Claim]] = {
        (layer, head): [] for layer in range(layers) for head in range(heads)
    }
    for claim in sorted(all_claims(tree), key=rank):
        made[claim.layer, claim.head].append(claim)
    return {place: _of_one(claims) for place, claims in made.items()}


def run_labels(tree: xr.DataTree) -> list[list[str]]:
    """[layer][head] in a few words, such as `direct object → verb 68 %`; '' for unlabelled."""
    found, (layers, heads) = head_labels(tree), shape(tree)
    return [
        ["; ".join(c.short for c in found[layer, head].labels[:IN_VIEWS]) for head in range(heads)]
        for layer in range(layers)
    ]


def _of_one(claims: Sequence[Claim]) -> HeadLabels:
    """The labels among the claims about one head, which are ordered."""
    passing = [claim for claim in claims if passes(claim)]
    kinds = {claim.kind for claim in passing}
    kept, taken = list[Claim](), Counter[str]()
    for claim in passing:
        said = kinds.intersection(RULES[claim.kind].unless)
        if not said and taken[claim.kind] < MOST_OF_KIND.get(claim.kind, 1):
            kept.append(claim)
            taken[claim.kind] += 1
    if any(claim.kind not in LOOKS for claim in kept):
        return HeadLabels(tuple(kept[:MOST]))
    return HeadLabels(tuple(kept), next((claim for claim in claims if not passes(claim)), None))
