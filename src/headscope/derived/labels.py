"""What is each head called, in a few words, by the results of a run?

What it knows of language comes first (`functions`), then where its attention goes (`roles`), each
with its number; '' where nothing is telling.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.derived.functions import functions
from headscope.derived.reading import estimate, group, shape, token_names
from headscope.derived.roles import head_roles
from headscope.derived.wording import percent

PLACES = {"previous": "previous token", "next": "next token", "first": "first token"}


def run_labels(tree: xr.DataTree) -> list[list[str]]:
    """[layer][head] such as `direct object → verb, 68 % [66, 71], baseline 36 %`."""
    roles, surface, known = head_roles(tree), group(tree, "surface"), functions(tree, most=1)
    layers, heads = shape(tree)

    def label(layer: int, head: int) -> str:
        if (layer, head) in known:
            return known[layer, head][0].sentence
        role = str(roles[layer, head])
        if role in ("broad", "other") or surface is None:
            return role if role == "broad" else ""
        share = float(estimate(surface, "attention", target=role).value[layer, head])
        name = PLACES.get(role) or token_names(tree).get(role, role)
        return f"{name} {percent(share, np.nan, np.nan)}"

    return [[label(layer, head) for head in range(heads)] for layer in range(layers)]
