"""The heads that tell most about the model, each with its strongest label.

Ranking, in the open: every labelled head comes with its strongest label (see `labels`). Heads are
taken one after the other, each time the one of largest effect, where each head already taken with
the same kind of label makes a further one count 15 % less: the sixth separator sink tells less than
the first head that does something else. The list is then ordered by effect alone.
"""

from __future__ import annotations

from collections import Counter

import xarray as xr

from headscope.core.claim import Claim, rank
from headscope.core.head_labels import head_labels

REPEAT = 0.85  # ours: what a label counts after one of its kind is taken


def telling_heads(tree: xr.DataTree, *, count: int = 20) -> list[Claim]:
    """The strongest labels of the `count` most telling heads, most telling first; one per head,
    fewer if fewer are labelled.

    Ties go to the lower layer, then the lower head: the order depends on the numbers alone.
    """
    strongest = [found.labels[0] for found in head_labels(tree).values() if found.labels]
    return sorted(_with_variety(sorted(strongest, key=rank), count), key=rank)


def _with_variety(ordered: list[Claim], count: int) -> list[Claim]:
    waiting, chosen, taken = list(ordered), list[Claim](), Counter[str]()
    while waiting and len(chosen) < count:
        # max keeps the first of equals, and `ordered` is ordered.
        claim = max(waiting, key=lambda claim: claim.effect * REPEAT ** taken[claim.kind])
        waiting.remove(claim)
        chosen.append(claim)
        taken[claim.kind] += 1
    return chosen
