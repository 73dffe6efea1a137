"""The rules of heads as data: for a file that `headscope explain --rules` reads, and as a table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyses.explained import QUESTION
from headscope.analyses.explained.rules import RESTS
from headscope.analyses.explained.sentences import CARD, rules_of, sentence
from headscope.claims.card_part import named_ends
from headscope.claims.reading import Reading
from headscope.core.head_names import Head, names_of
from headscope.core.results import LIMITS, at, shape
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


def explanation(tree: xr.DataTree, head: str | Head) -> dict[str, Any]:
    """The rules of one head as `explain` writes them, and how much of the head they explain.

    returns  head, its name; rest and rules, those of its attention, as `hs.replay(rules=…)` takes
             them; sentence, on what it gathers; attention, gathering, iou and by_content, what is
             explained, with the ends of its interval; gathers, the rules of what it gathers with
             the share of each, its rest, and the contexts that show where it is used; roles
    raises   InputError as `explain`
    """
    ((name, rules),) = explain(tree, head)["heads"].items()
    run, place = Reading(tree, QUESTION), names_of(tree).read(head)
    numbers = {
        "attention": "attention.rules",
        "gathering": "gathering.rules",
        "iou": "iou",
        "by_content": "beyond",
    }
    data = CARD.data(run, *place)
    return {
        "head": name,
        **rules,
        "sentence": sentence(run, *place),
        **{name: named_ends(at(run(key), *place)) for name, key in numbers.items()},
        "gathers": data.get("rules", []),
        "roles": data.get("roles", []),
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
