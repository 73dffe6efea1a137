"""Which heads tell most about the model, and what is there to say of each?

Ranking, in the open: every head gets its claim of largest effect (see `claims`); heads are
ordered by it; no kind of claim takes more than a quarter of the list while others wait, so that
five separator sinks do not hide the one head that does something else; what is left fills up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import xarray as xr

from headscope.derived.claims import Claim, all_claims

KIND_SHARE = 4  # one kind takes at most 1/4 of the list at first


def telling_heads(tree: xr.DataTree, *, count: int = 20) -> list[Claim]:
    """The `count` most telling heads, most telling first; one claim per head, fewer if fewer stand
    out above the ordinary.

    Ties go to the lower layer, then the lower head: the order depends on the numbers alone.
    """
    best = best_claims(all_claims(tree))
    chosen = _with_variety(best, count)
    return sorted(chosen, key=_rank)


def best_claims(claims: Iterable[Claim]) -> list[Claim]:
    """One claim per head, the one of largest effect; ordered by it."""
    best: dict[tuple[int, int], Claim] = {}
    for claim in sorted(claims, key=_rank):
        best.setdefault((claim.layer, claim.head), claim)
    return list(best.values())


def _with_variety(ordered: list[Claim], count: int) -> list[Claim]:
    limit = max(1, count // KIND_SHARE)
    taken: Counter[str] = Counter()
    chosen, waiting = [], []
    for claim in ordered:
        if taken[claim.kind] < limit:
            chosen.append(claim)
            taken[claim.kind] += 1
        else:
            waiting.append(claim)
    return (chosen[:count] + waiting)[:count]


def _rank(claim: Claim) -> tuple[float, int, int, str]:
    return (-claim.effect, claim.layer, claim.head, claim.kind)
