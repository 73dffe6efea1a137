"""Which heads tell most about the model, and what is there to say of each?

Ranking, in the open: every head gets its claim of largest effect (see `claims`). Heads are taken
one after the other, each time the one of largest effect, where each head already taken with the
same kind of claim makes a further one count 15 % less: the sixth separator sink tells less than
the first head that does something else. The list is then ordered by effect alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import xarray as xr

from headscope.derived.claim import Claim
from headscope.derived.claims import all_claims

REPEAT = 0.85  # ours: what a claim counts after one of its kind is taken


def telling_heads(tree: xr.DataTree, *, count: int = 20) -> list[Claim]:
    """The `count` most telling heads, most telling first; one claim per head, fewer if fewer stand
    out above the ordinary.

    Ties go to the lower layer, then the lower head: the order depends on the numbers alone.
    """
    return sorted(_with_variety(best_claims(all_claims(tree)), count), key=_rank)


def best_claims(claims: Iterable[Claim]) -> list[Claim]:
    """One claim per head, the one of largest effect; ordered by it."""
    best: dict[tuple[int, int], Claim] = {}
    for claim in sorted(claims, key=_rank):
        best.setdefault((claim.layer, claim.head), claim)
    return list(best.values())


def _with_variety(ordered: list[Claim], count: int) -> list[Claim]:
    waiting, chosen, taken = list(ordered), list[Claim](), Counter[str]()
    while waiting and len(chosen) < count:
        # max keeps the first of equals, and `ordered` is ordered.
        claim = max(waiting, key=lambda claim: claim.effect * REPEAT ** taken[claim.kind])
        waiting.remove(claim)
        chosen.append(claim)
        taken[claim.kind] += 1
    return chosen


def _rank(claim: Claim) -> tuple[float, int, int, str]:
    return (-claim.effect, claim.layer, claim.head, claim.kind)
