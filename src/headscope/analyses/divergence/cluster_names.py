"""What do the heads of a cluster do, in a few words, or is it mixed?

The label that half of the heads or more bear names a cluster, if fewer of the other heads bear it.
Where there is none, or where it leaves open where they attend, so does the target that they attend
to more than all other heads, or how much wider or narrower they attend. What is left is mixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.claim import Claim
from headscope.core.head_attention import has_cls
from headscope.core.head_labels import head_labels
from headscope.core.results import Floats, estimate, group, token_names
from headscope.core.wording import percent, plain

MIXED = "mixed"
MOST_HEADS = 0.5  # ours: of a cluster's heads bear the label that names it
MORE = 0.25  # ours: than of the other heads
SPREADS = 0.8  # a large difference by Cohen's convention, in standard deviations of all heads
LEAST_SHARE = 0.1  # ours: of the attention; less does not name a cluster
WIDTHS = ("broad", "narrow")
# Kinds of labels that leave open where a head attends.
OPEN = (*WIDTHS, "vertical", "diagonal", "vertical_diagonal", "block")
ENTROPY = "entropy"
TARGETS = {
    "previous": "the previous token", "next": "the next token", "self": "the token itself",
    "first": "the first token", "cls": "[CLS]", "sep": "[SEP]",
    "punctuation": "full stops and commas",
}  # fmt: skip
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Difference:
    """How the heads of a cluster differ from all other heads in one number.

    of       a target, or ENTROPY
    spreads  standard deviations (of all heads) that the means lie apart
    here, there  the means of the cluster's and of the other heads
    """

    of: str
    spreads: float
    here: float
    there: float


def cluster_names(tree: xr.DataTree, number: npt.NDArray[np.int64]) -> list[str]:
    """What each cluster does; number [unit] the cluster of every head, from 0.

    `attention sink on [SEP] (9 of 12)`; `more to the next token (27 %, others 4 %)`; `mixed`
    """
    labels = [found.labels for found in head_labels(tree).values()]  # [unit]
    numbers = _numbers(tree)
    return [_name(tree, labels, numbers, number == at) for at in range(int(number.max()) + 1)]


def _name(
    tree: xr.DataTree,
    labels: Sequence[Sequence[Claim]],
    numbers: dict[str, Floats],
    own: Bools,
) -> str:
    label, kind = _common_label(labels, own)
    parts = [label] if label else []
    if not label or kind in OPEN:
        found = _largest(_differences(numbers, own), widths=kind not in WIDTHS)
        parts += [_said(tree, found)] if found else []
    return "; ".join(parts) or MIXED


def _common_label(labels: Sequence[Sequence[Claim]], own: Bools) -> tuple[str, str]:
    """The label that tells the cluster from the other heads, with how many bear it, and its kind.

    '' where no label is borne by MOST_HEADS of its heads and, as a share, by MORE than of others.
    """
    names = [{claim.name: claim.kind for claim in found} for found in labels]
    inside = Counter(name for at in np.flatnonzero(own) for name in names[at])
    outside = Counter(name for at in np.flatnonzero(~own) for name in names[at])
    count, others = int(own.sum()), max(int((~own).sum()), 1)
    more = {
        name: borne / count - outside[name] / others
        for name, borne in sorted(inside.items())
        if borne >= MOST_HEADS * count
    }
    best = max(more, key=lambda name: more[name], default="")
    if not best or more[best] < MORE:
        return "", ""
    kind = next(found[best] for found in names if best in found)
    return best if inside[best] == count else f"{best} ({inside[best]} of {count})", kind


def _numbers(tree: xr.DataTree) -> dict[str, Floats]:
    """Target → [unit] mean attention to it, and the entropy; those that the run has."""
    surface, entropy = group(tree, "surface"), group(tree, "entropy")
    found: dict[str, Floats] = {}
    if surface is not None:
        wanted = [name for name in TARGETS if name != "first" or not has_cls(tree)]
        found = {name: estimate(surface, "attention", target=name).value for name in wanted}
    if entropy is not None:
        found[ENTROPY] = estimate(entropy, "entropy", query="all").value
    flat = {name: value.reshape(-1) for name, value in found.items()}  # [unit]
    return {name: value for name, value in flat.items() if np.isfinite(value).all()}


def _differences(numbers: dict[str, Floats], own: Bools) -> list[Difference]:
    """One for every number in which heads differ at all; none if there are no other heads."""
    if own.all():
        return []
    return [
        Difference(
            name,
            float((value[own].mean() - value[~own].mean()) / value.std()),
            float(value[own].mean()),
            float(value[~own].mean()),
        )
        for name, value in numbers.items()
        if value.std() > 0
    ]


def _largest(differences: Sequence[Difference], *, widths: bool) -> Difference | None:
    """The largest that can name a cluster: more to a target, before wider or narrower."""
    targets = [
        found for found in differences
        if found.of != ENTROPY and found.spreads >= SPREADS and found.here >= LEAST_SHARE
    ]  # fmt: skip
    if targets:
        return max(targets, key=lambda found: found.spreads)
    wide = [found for found in differences if found.of == ENTROPY and abs(found.spreads) >= SPREADS]
    return wide[0] if wide and widths else None


def _said(tree: xr.DataTree, found: Difference) -> str:
    if found.of == ENTROPY:
        how = "spread wider" if found.spreads > 0 else "on fewer tokens"
        ends = [f"{plain(found.here, 'nats')} nats", plain(found.there, "nats")]
        return f"{how} (entropy {ends[0]}, others {ends[1]})"
    goal = token_names(tree).get(found.of) or TARGETS[found.of]
    ends = [percent(value, np.nan, np.nan) for value in (found.here, found.there)]
    return f"more to {goal} ({ends[0]}, others {ends[1]})"
