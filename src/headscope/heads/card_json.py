"""How is a head's card written for programs? NaN becomes null; indices count from 0."""

from __future__ import annotations

import math
from typing import Any

import xarray as xr

from headscope.analyses.dependency.best_relations import HeadRelation
from headscope.analyses.divergence.clusters import Cluster
from headscope.analyses.patterns.typical_maps import TypicalMap
from headscope.core.claim import Claim
from headscope.core.results import head_name, shape
from headscope.heads.head_card import Ends, HeadCard, RankedNumber

DIGITS = 9  # of a number, in all


def card_json(tree: xr.DataTree, card: HeadCard) -> dict[str, Any]:
    """Everything of the card, ready for `json.dumps(…, allow_nan=False)`."""
    heads, closest = shape(tree)[1], card.labels.closest
    return {
        "model": str(tree.attrs.get("model", "")),
        "revision": str(tree.attrs.get("revision", "")),
        "layer": card.layer,
        "head": card.head,
        "name": card.name,
        "labels": [_claim(label) for label in card.labels.labels],
        "closest": None if closest is None else _claim(closest),
        "numbers": [_number(number) for number in card.numbers],
        "relations": [_relation(relation) for relation in card.relations],
        "classes": {name: _ends(ends) for name, ends in card.classes.items()},
        "nearest": [
            {
                "layer": other.layer,
                "head": other.head,
                "name": head_name(other.layer * heads + other.head, heads),
                **_ends((other.js, other.low, other.high)),
            }
            for other in card.nearest
        ],
        "cluster": None if card.cluster is None else _cluster(card.cluster),
        "maps_from": card.source,
        "maps": [_map(one) for one in card.maps],
        "documents": card.n,
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "kind": claim.kind,
        "label": claim.name,
        "text": claim.label,
        "sentence": claim.sentence,
        **_ends((claim.value, claim.low, claim.high)),
        "reference": _plain(claim.reference),
        "effect": _plain(claim.effect),
        "n": claim.n,
        "analysis": claim.analysis,
    }


def _number(number: RankedNumber) -> dict[str, Any]:
    return {
        "key": number.metric.key,
        "analysis": number.analysis,
        "label": number.metric.label,
        "unit": number.metric.unit,
        **_ends(number.ends),
        "rank": number.rank or None,
        "of": number.of,
        "percentile": _plain(number.percentile),
        "n": number.metric.n,
    }


def _relation(relation: HeadRelation) -> dict[str, Any]:
    return {
        "relation": relation.relation,
        "direction": relation.direction,
        "words": relation.words,
        **_ends(relation.ends),
        "baseline": _plain(relation.baseline),
        "rank": relation.rank,
        "of": relation.of,
        "count": relation.count,
    }


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return {
        "cluster": cluster.number,
        "name": cluster.name,
        "size": len(cluster.units),
        "silhouette": _ends(cluster.silhouette),
        "jaccard": _plain(cluster.jaccard),
    }


def _map(one: TypicalMap) -> dict[str, Any]:
    return {
        "tokens": list(one.tokens),
        "special": one.special.tolist(),
        "weights": [[_plain(value) for value in row] for row in one.weights.tolist()],
        "class": one.kind or None,
        "score": _plain(one.score),
        "away": _plain(one.away),
        "rests": {token: _plain(share) for token, share in one.rests},
        "links": [
            {"query": query, "key": key, "weight": _plain(weight)}
            for query, key, weight in one.links()
        ],
    }


def _ends(ends: Ends) -> dict[str, float | None]:
    return dict(zip(("value", "ci_low", "ci_high"), map(_plain, ends), strict=True))


def _plain(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
