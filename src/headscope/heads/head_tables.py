"""Labels of heads as tables: one row per head to read, one row per label to compute with.

Layers and heads are 0-based, as in the data; `name` counts from 1, as papers do.
"""

from __future__ import annotations

import pandas as pd
import xarray as xr

from headscope.core.head_labels import head_labels
from headscope.core.head_roles import head_roles
from headscope.core.results import head_name, shape

LABEL_COLUMNS = (
    "rank", "kind", "label", "text", "sentence", "value", "ci_low", "ci_high", "reference",
    "effect", "n", "analysis",
)  # fmt: skip


def head_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per head: model, revision, layer, head, name, labels, kinds, role.

    labels  with their numbers, strongest first, joined by "; "; "unlabelled" where there are none
    kinds   the same in words of `label_rules.RULES`, joined by ";"; "" where there are none
    role    of `head_roles`: what the head's colour stands for
    """
    heads, roles = shape(tree)[1], head_roles(tree)
    rows = [
        {
            **_model(tree),
            "layer": layer,
            "head": head,
            "name": head_name(layer * heads + head, heads),
            "labels": found.text,
            "kinds": ";".join(label.kind for label in found.labels),
            "role": str(roles[layer, head]),
        }
        for (layer, head), found in head_labels(tree).items()
    ]
    return pd.DataFrame(rows)


def label_table(tree: xr.DataTree) -> pd.DataFrame:
    """One row per label of a head, none for unlabelled heads; empty, with its columns, if all are.

    returns  model, revision, layer, head, rank (1 = strongest), kind, label (without numbers), text
             (with them), sentence; value, ci_low, ci_high and reference as shares of 1; effect, n
             (documents), analysis
    """
    columns = [*_model(tree), "layer", "head", *LABEL_COLUMNS]
    rows = [
        [
            *_model(tree).values(), layer, head, place, label.kind, label.name, label.label,
            label.sentence, label.value, label.low, label.high, label.reference, label.effect,
            label.n, label.analysis,
        ]
        for (layer, head), found in head_labels(tree).items()
        for place, label in enumerate(found.labels, start=1)
    ]  # fmt: skip
    whole = dict.fromkeys(("layer", "head", "rank", "n"), "int64")  # also where there is no row
    shares = dict.fromkeys(("value", "ci_low", "ci_high", "reference", "effect"), "float64")
    return pd.DataFrame(rows, columns=columns).astype(whole | shares)


def _model(tree: xr.DataTree) -> dict[str, str]:
    return {name: str(tree.attrs.get(name, "")) for name in ("model", "revision")}
