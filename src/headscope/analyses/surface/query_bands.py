"""What do tokens near the start of an input look at, and what those far from it?

A token that sees many others has less for each, and where all inputs are windows of one length no
length of inputs tells of that. So shares are kept by the band of the place of the query, too.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.card_part import CardPart, named_ends
from headscope.claims.head_attention import OFFSETS, TARGETS, has_cls, special_name
from headscope.claims.head_labels import label_rules, with_label
from headscope.claims.length_bands import NAMES
from headscope.claims.reading import Reading
from headscope.core.head_names import names_of
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, at, derived, estimate, group
from headscope.core.wording import percent

BY_PLACE, WEIGHT = "attention_by_place", "query_weight"
GOALS = (*OFFSETS, "first")  # what a query looks at
APART = 0.1  # ours: of the attention; less is no difference to tell


@derived
def _by_goal(tree: xr.DataTree) -> dict[str, tuple[str, Estimate]]:
    """Goal -> its name, and the shares [layer, head, band]; none of a run of an older version."""
    dataset = group(tree, "surface")
    if dataset is None or BY_PLACE not in dataset:
        return {}
    names = {goal: TARGETS[goal].goal for goal in GOALS}
    if has_cls(tree):
        names["first"] = special_name(tree, "cls")
    return {goal: (names[goal], estimate(dataset, BY_PLACE, goal=goal)) for goal in GOALS}


def _said(tree: xr.DataTree, parts: Estimate) -> Estimate:
    """Without the first band of decoders: its tokens see so few that even attention differs."""
    if tree.attrs.get("stack") != "decoder":
        return parts
    return parts.map(lambda part: np.where(np.arange(len(NAMES)) == 0, np.nan, part))


def _apart(parts: Estimate) -> Floats:
    """[layer, head] by how much bands differ at most; NaN where none surely do, by APART."""
    there = np.isfinite(parts.low)  # [layer, head, band]
    least, high = (np.where(there, part, np.inf).min(-1) for part in (parts.value, parts.high))
    most, low = (np.where(there, part, -np.inf).max(-1) for part in (parts.value, parts.low))
    sure = there.any(-1) & (high < low)
    apart = np.subtract(most, least, out=np.full(sure.shape, np.nan), where=sure)
    return np.where(apart >= APART, apart, np.nan)


def finding(run: Reading) -> str:
    """What the mean head attends to most, and what depends on the place of a token."""
    means = {
        target: run.mean(f"attention.{target}")
        for target in TARGETS
        if not (target == "first" and has_cls(run.tree))
    }
    most = max(means, key=lambda target: np.nan_to_num(means[target]))
    if not np.isfinite(means[most]):
        return ""
    mean = f"The mean head gives {TARGETS[most].goal} {percent(means[most])} of its attention."
    return f"{mean} {by_place(run.tree)}".strip()


def by_place(tree: xr.DataTree) -> str:
    """How many labelled heads give the first token more from near than from far, or less; "" of
    none. Heads without a label do nothing that one without training does not.
    """
    if "first" not in (by_goal := _by_goal(tree)):
        return ""
    name, parts = by_goal["first"][0], _said(tree, by_goal["first"][1])
    apart = np.where(with_label(tree, *label_rules()), _apart(parts), np.nan)
    if not (count := int(np.isfinite(apart).sum())):
        return ""
    layer, head = np.unravel_index(np.nanargmax(apart), apart.shape)
    said = [
        f"{percent(float(parts.value[layer, head, b]))} from tokens {NAMES[b]}"
        for b in np.flatnonzero(np.isfinite(parts.low[layer, head]))[[0, -1]]
    ]
    one = f"{names_of(tree).head(int(layer), int(head))} {' and '.join(said)}"
    return (
        f"{count} labelled head{'s' * (count != 1)} give{'s' * (count == 1)} {name} another share "
        f"from tokens near the start than from those far from it: {one}."
    )


def _lines(run: Reading, layer: int, head: int) -> Iterator[str]:
    for name, every in _by_goal(run.tree).values():
        parts = _said(run.tree, every)
        if np.isfinite(_apart(parts)[layer, head]):
            bands = np.flatnonzero(np.isfinite(parts.low[layer, head])).tolist()
            said = (f"{percent(*at(parts, layer, head, b))} from tokens {NAMES[b]}" for b in bands)
            yield f"{name}: {', '.join(said)}"


def _data(run: Reading, layer: int, head: int) -> dict[str, Any]:
    rows = [
        {"goal": goal, "tokens": NAMES[b], **named_ends(at(parts, layer, head, b))}
        for goal, (_, parts) in _by_goal(run.tree).items()
        for b in np.flatnonzero(np.isfinite(parts.value[layer, head])).tolist()
    ]
    return {"by_place": rows} if rows else {}


CARD = CardPart(
    place=15,
    title="By the place of the token that looks, counted from the start",
    lines=_lines,
    data=_data,
)
