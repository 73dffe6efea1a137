"""When a label of a head is born and when it goes, from the steps at which it was measured.

A label that is not there at one measured step and there at the next was born between the two: the
pair is the interval of its birth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.claims.head_labels import label_rules

LASTING = 2  # ours: measured steps in a row, or the last one: a shorter spell is a flicker


@dataclass(frozen=True)
class Spell:
    """A stretch of training in which a head has a label.

    born_after  last measured step without it; None: it is there at the first one
    born_by     first measured step with it
    last        last measured step with it
    gone_by     first measured step without it again; None: it stays until the end
    count       measured steps with it
    """

    label: str
    kind: str
    layer: int
    head: int
    born_after: int | None
    born_by: int
    last: int
    gone_by: int | None
    count: int

    @property
    def lasts(self) -> bool:
        """Whether it is more than a flicker."""
        return self.count >= LASTING or self.gone_by is None

    @property
    def born(self) -> str:
        """When it was born, in words: `between steps 400 and 450`."""
        if self.born_after is None:
            return f"by step {self.born_by:,}, the first that was measured"
        return f"between steps {self.born_after:,} and {self.born_by:,}"

    @property
    def gone(self) -> str:
        """When it went, in words; "" where it stays."""
        return "" if self.gone_by is None else f"between steps {self.last:,} and {self.gone_by:,}"


def spells(evolution: xr.Dataset) -> list[Spell]:
    """All spells of all labels, in the order of their births."""
    if "labelled" not in evolution:
        return []
    steps = evolution["step"].values.tolist()
    names, kinds = (evolution[name].values.tolist() for name in ("label", "kind"))
    held = evolution["labelled"].values > 0  # [step, label, layer, head]
    made = list[Spell]()
    for label, layer, head in np.argwhere(held.any(0)).tolist():
        edges = np.diff(held[:, label, layer, head].astype(int), prepend=0, append=0)
        starts, ends = np.flatnonzero(edges > 0).tolist(), np.flatnonzero(edges < 0).tolist()
        made += [
            Spell(
                label=names[label],
                kind=kinds[label],
                layer=layer,
                head=head,
                born_after=steps[start - 1] if start else None,
                born_by=steps[start],
                last=steps[end - 1],
                gone_by=steps[end] if end < len(steps) else None,
                count=end - start,
            )
            for start, end in zip(starts, ends, strict=True)
        ]
    return sorted(made, key=lambda one: (one.born_by, one.label, one.layer, one.head))


def is_behind(measure: str, kind: str) -> bool:
    """Whether a number, by its key, is what labels of a kind rest on."""
    rule = label_rules().get(kind)
    return measure.rpartition(".")[2] in (kind, rule.variable if rule else "")


def lasting_spells(evolution: xr.Dataset) -> list[Spell]:
    """Those that are more than a flicker."""
    return [one for one in spells(evolution) if one.lasts]
