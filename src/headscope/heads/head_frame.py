"""What is known of all heads as a data frame, and which heads do something that is named."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import pandas as pd
import xarray as xr

from headscope.claims.claim import Claim, rank
from headscope.claims.head_labels import all_claims, head_labels, label_rules
from headscope.claims.head_metrics import HeadMetric, first_metrics, head_metrics
from headscope.core.head_names import names_of
from headscope.core.results import derived_once
from headscope.errors import InputError
from headscope.heads.tables import head_table

LABEL = ("label", "where", "effect", "value", "ci_low", "ci_high", "reference", "n")
FOUND = ("is_label", *LABEL, "sentence")
MOST_NAMES = 24  # of an error


@derived_once()
def head_frame(tree: xr.DataTree, *numbers: str) -> pd.DataFrame:
    """One row per head, in the order of layers and heads.

    numbers  further numbers per head, each with its interval; names as in the data, group.variable
             or group.variable.choice: "surface.attention.previous". Without any, those that come
             first in the report of an experiment
    returns  layer and head (from 0), name (L1·H1), labels (with their numbers, strongest first,
             joined by "; "), kinds; label, where (`up to 32 tokens`), effect, value, ci_low,
             ci_high, reference (shares of 1) and n (documents) of the strongest label, missing for
             unlabelled heads; and each number KEY with KEY_ci_low, KEY_ci_high
    raises   InputError for a number that the run does not have, with near names
    """
    frame = head_table(tree).drop(columns=["model", "revision"])
    firsts = [one.labels[0] if one.labels else None for one in head_labels(tree).values()]
    for name in LABEL:
        frame[name] = [None if first is None else first.row[name] for first in firsts]
    frame = frame.astype({name: "Int64" if name == "n" else "float64" for name in LABEL[2:]})
    for metric in _numbers(tree, numbers):
        parts = metric.estimate
        for end, values in (("", parts.value), ("_ci_low", parts.low), ("_ci_high", parts.high)):
            frame[f"{metric.key}{end}"] = values.ravel()  # [layer · heads + head]
    return frame


def _numbers(tree: xr.DataTree, names: tuple[str, ...]) -> list[HeadMetric]:
    every = head_metrics(tree)
    known = {metric.key: metric for metric in every}
    for name in names:
        if name not in known:
            raise InputError(f"no number {name!r} per head in this run; {_near(name, known)}")
    return [known[name] for name in names] if names else first_metrics(every)


@derived_once()
def find_heads(tree: xr.DataTree, what: str) -> pd.DataFrame:
    """The heads with a matching claim, labels first, then by effect.

    what     part of a label's name ("direct object", "previous token"), or exactly a relation of
             the data ("obj") or a kind of label ("sink"); lower or upper case
    returns  layer and head (from 0), name, is_label (whether the claim passes the rule of its kind
             and departs from the control: others are only above an ordinary head), label, where,
             effect, value, ci_low, ci_high, reference, n, sentence
    raises   InputError where nothing of the kind is claimed of any head, with near names
    """
    names = names_of(tree)
    wanted, claims = what.strip().casefold(), all_claims(tree)
    titles = {kind: rule.title for kind, rule in label_rules().items()}
    said = {id(one): (one.name, one.about, one.kind, titles[one.kind]) for one in claims}
    matches = [
        claim
        for claim in claims
        if wanted
        and (wanted in claim.name.casefold() or wanted in map(str.casefold, said[id(claim)]))
    ]
    if not matches:
        words = [word for some in said.values() for word in some if word]
        near = _near(what, dict.fromkeys(claim.name for claim in claims), words)
        raise InputError(f"no head of this run has the label or claim {what!r}; {near}")
    labels = {_same(label): label for one in head_labels(tree).values() for label in one.labels}
    matches = [labels.get(_same(claim), claim) for claim in matches]
    matches.sort(key=lambda claim: (_same(claim) not in labels, rank(claim)))
    rows = [
        {
            "layer": names.number(one.layer),
            "head": one.head,
            "name": names.head(one.layer, one.head),
            "is_label": _same(one) in labels,
            **one.row,
        }
        for one in matches
    ]
    return pd.DataFrame(rows)[["layer", "head", "name", *FOUND]]


def _same(claim: Claim) -> tuple[int, int, str, str]:
    return claim.layer, claim.head, claim.kind, claim.name


def _near(name: str, known: Iterable[str], more: Iterable[str] = ()) -> str:
    """Similar names in `known` or `more`, or the list of all."""
    names = list(known)
    lower = {one.casefold(): one for one in (*names, *more)}
    near = [lower[one] for one in get_close_matches(name.casefold(), lower, 3, 0.5)]
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    there = ", ".join(names[:MOST_NAMES]) or "none"
    return f"{meant}there are: {there}{', …' if len(names) > MOST_NAMES else ''}"
