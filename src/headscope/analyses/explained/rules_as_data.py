"""The rules of heads as data: for a file that `headscope explain --rules` reads, and as a table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.rules import RESTS
from headscope.analyses.explained.sentences import rules_of
from headscope.claims.reading import Reading
from headscope.core.head_names import Head, names_of
from headscope.core.results import LIMITS, shape
from headscope.errors import InputError


def explain(tree: xr.DataTree, head: str | Head | None = None) -> dict[str, Any]:
    """The rules that predict the attention of a head, or of all: what `hs.replay(rules=…)` takes.

    Key tokens, which are of this run's texts, are left out; a weight above 1 is written as 1, which
    is what it comes to.

    tree     the results of a run of `atlas` with the analysis `explained`, `run.tree`
    head     as `L4H10`, or (layer, head) from 0; None: all heads
    returns  {"heads": {"L4H10": {"rest": "the first token", "rules": [{"rule": "the previous
             token", "weight": 0.9}, …]}}}, names from 1; `json.dump` writes it
    raises   InputError for a run without `explained`, or without such a head
    """
    if QUESTION.name not in tree.children:
        raise InputError(
            "the run has no results of explained; run atlas with it: --analyses explained"
        )
    names, (layers, heads) = names_of(tree), shape(tree)
    places = [*np.ndindex(layers, heads)]
    if head is not None:
        place = names.read(head)
        if place not in places:
            raise InputError(f"found the head {head!r}; wanted one of {layers} × {heads}")
        places = [place]
    run = Reading(tree, QUESTION)
    return {
        "heads": {
            f"L{names.number(layer) + 1}H{at + 1}": _rules(run, layer, at) for layer, at in places
        }
    }


def _rules(run: Reading, layer: int, head: int) -> dict[str, Any]:
    data = run.data.sel(explains="attention")
    rest, names = int(data["rest"].values[layer, head]), json.loads(run.data.attrs["rules"])
    places = zip(
        data["rule"].values[layer, head].tolist(),
        data["weight"].values[layer, head].tolist(),
        strict=True,
    )
    return {
        "rest": RESTS[rest] if rest >= 0 else "",
        "rules": [{"rule": names[at], "weight": min(w, 1.0)} for at, w in places if at >= 0],
    }


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """A row for each rule of each head: layer and head from 0, what it explains of what the head
    gathers, with its interval, and whether it is the rest.
    """
    rows = [
        {
            "model": str(run.tree.attrs.get("model", "")),
            "revision": str(run.tree.attrs.get("revision", "")),
            "layer": layer,
            "head": head,
            "rule": rule.name,
            "kind": rule.kind,
            "is_rest": rule.rests,
            "weight": rule.weight,
            **dict(zip([f"share{end}" for end in ("", *LIMITS)], rule.share, strict=True)),
        }
        for layer, head in np.ndindex(*shape(run.tree))
        for rule in rules_of(run, layer, head)
    ]
    return {"rules_of_heads": pd.DataFrame(rows)} if rows else {}
