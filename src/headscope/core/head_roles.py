"""The role of every head in one word, which colours and signs stand for.

The thresholds on mean attention and entropy are those of Clark et al. (2019), section 6. Where two
roles fit, the later in ORDER wins. We differ in three points: `broad` is relative to uniform
attention, because 3.8 nats suppose 128 tokens; decoders without [CLS] have `first`; and the lower
end of an interval must lie above the threshold. Questions say which heads have a role
(`Question.roles`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.question import parts
from headscope.core.results import derived, shape

ORDER = ("next", "previous", "broad", "first", "cls", "sep", "punctuation")
ROLES = ("previous", "next", "broad", "cls", "first", "sep", "punctuation", "other")
BROAD_SHARE = 0.9  # ours: of the uniform entropy
CLARK_BROAD_NATS = 3.8  # Clark's notebook, inputs of up to 128 tokens


@derived
def head_roles(
    tree: xr.DataTree, *, broad_nats: float | None = None, by_value: bool = False
) -> npt.NDArray[np.str_]:
    """The role of every head; its labels say more (`head_labels`).

    broad_nats  entropy above which a head counts as broad, in nats; None takes 0.9 of uniform,
                CLARK_BROAD_NATS is the original's
    by_value    whether the value alone must lie above the threshold, as in the original; else the
                lower end of its interval, as for labels
    returns     [layer, head] words of ROLES
    """
    known: dict[str, npt.NDArray[np.bool_]] = {}
    for roles_of in parts("roles"):
        known |= roles_of(tree, broad_nats=broad_nats, by_value=by_value)
    roles = np.full(shape(tree), "other", dtype=f"<U{max(map(len, ROLES))}")
    for role in ORDER:
        if role in known:
            roles[known[role]] = role
    return roles
