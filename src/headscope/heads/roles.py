"""What does each head do, in one word?

Clark et al. (2019), section 6: thresholds on mean attention and entropy; of two labels that both
fit, the later rule wins. Ours differ in three points, all named: `broad` is relative to uniform
attention, because 3.8 nats presuppose 128 tokens, decoders without [CLS] have `first`, and the
lower end of an interval must lie above the threshold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.results import estimate, group, shape, surely

ROLES = ("previous", "next", "broad", "cls", "first", "sep", "punctuation", "other")
POSITION = 0.5  # Clark's notebook: next, previous
SPECIAL = 0.6  # Clark's notebook: [CLS], [SEP], punctuation
BROAD_SHARE = 0.9  # ours: of the uniform entropy
CLARK_BROAD_NATS = 3.8  # Clark's notebook, inputs of up to 128 tokens


def head_roles(
    tree: xr.DataTree, *, broad_nats: float | None = None, by_value: bool = False
) -> npt.NDArray[np.str_]:
    """The role of every head: what colours and signs stand for. Its labels say more (`labels`).

    broad_nats  entropy above which a head counts as broad, in nats; None takes 0.9 of uniform,
                CLARK_BROAD_NATS is the original's
    by_value    whether the value alone must lie above the threshold, as in the original; else the
                lower end of its interval, as for labels
    returns     [layer, head] words of ROLES
    """
    roles = np.full(shape(tree), "other", dtype=f"<U{max(map(len, ROLES))}")
    surface = group(tree, "surface")
    rules = [("next", POSITION), ("previous", POSITION), ("broad", np.nan)]
    rules += [("first", SPECIAL), ("cls", SPECIAL), ("sep", SPECIAL), ("punctuation", SPECIAL)]
    for role, threshold in rules:
        if role == "broad":
            roles[is_broad(tree, broad_nats=broad_nats, by_value=by_value)] = role
        elif surface is not None and not (role == "first" and has_cls(tree)):
            share = estimate(surface, "attention", target=role)
            roles[(share.value if by_value else surely(share)) > threshold] = role
    return roles


def is_broad(
    tree: xr.DataTree, *, broad_nats: float | None = None, by_value: bool = False
) -> npt.NDArray[np.bool_]:
    """[layer, head] whether a head spreads its attention about as widely as it could."""
    entropy = group(tree, "entropy")
    if entropy is None:
        return np.zeros(shape(tree), dtype=bool)
    limit = BROAD_SHARE * float(entropy["uniform"]) if broad_nats is None else broad_nats
    nats = estimate(entropy, "entropy", query="all")
    return np.asarray((nats.value if by_value else surely(nats)) > limit)


def has_cls(tree: xr.DataTree) -> bool:
    """Whether the run's inputs open with a classification token."""
    surface = group(tree, "surface")
    if surface is None:
        return bool(tree.attrs.get("cls_token", ""))
    return bool(np.isfinite(estimate(surface, "attention", target="cls").value).any())
