"""Assembles the group `discovery` from what was found by prompt."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr

from headscope.claims.terms import HANNA, MUELLER, OURS, WANG
from headscope.core.accumulators import REPLICATES, Float64, generator, left_out, means_over
from headscope.core.head_names import HeadNames
from headscope.core.intervals import Estimate, estimate, without_interval
from headscope.core.results import Variable, labelled
from headscope.experiments.circuits.discovery.edge_attribution import reader_keys
from headscope.experiments.circuits.discovery.finding import FAITHFUL, ORDERS, Discovery
from headscope.experiments.circuits.discovery.node_sets import REPLACEMENTS, SHARES, areas, in_order
from headscope.experiments.circuits.over_items import (
    FEWEST_ITEMS,
    about,
    accuracy,
    accuracy_variable,
    share_over,
)

RESAMPLES = 200
FROM = "share of the difference between the whole network and none of it"


def discovery_result(found: Discovery, names: HeadNames, *, replicates: int) -> xr.Dataset:
    """The group `discovery`; see `find_circuit` for what is in it."""
    whole, empty, replaced = found.whole, found.empty, found.empty[:, 0]
    gap = whole - replaced
    share = partial(share_over, found.tried, replicates=replicates)
    of_curves = _draws(found, found.curves - empty[:, :, None, None], whole[:, None] - empty)
    size, (cpr, cmd) = int(found.member.sum()), areas(np.moveaxis(of_curves, -1, 0))
    needed = np.full((3, len(found.nodes)), np.nan)
    of_members = share(found.circuit[:, :1] - found.without, gap)
    needed[:, found.member] = [of_members.value, of_members.low, of_members.high]
    circuit, network = np.moveaxis(found.halves, 1, 0)
    rows: dict[str, tuple[object, tuple[str, ...], str, str]] = {
        "score": (
            _score(found, replicates),
            ("node",),
            "share of the logit difference that the node moves, by integrated gradients",
            HANNA,
        ),
        "included": (
            _included(found, size),
            ("node",),
            "how often the node is among as many first ones, items resampled",
            OURS,
        ),
        "member": (found.member.astype(float), ("node",), "1 for nodes of the circuit", OURS),
        "needed": (Estimate(*needed), ("node",), "what the circuit loses without it", WANG),
        "faithfulness": (
            _estimate(found, of_curves),
            ("replacement", "order", "share"),
            f"{FROM} that the first nodes tell",
            MUELLER,
        ),
        "cpr": (_estimate(found, cpr[..., 0]), ("replacement",), "area below the curve", MUELLER),
        "cmd": (
            _estimate(found, cmd[..., 1]),
            ("replacement",),
            "area between the curve of the largest scores and 1",
            MUELLER,
        ),
        "circuit_faithfulness": (
            _estimate(found, _draws(found, found.circuit - empty, whole[:, None] - empty)),
            ("replacement",),
            f"{FROM} that the circuit tells",
            MUELLER,
        ),
        "random_faithfulness": (
            share(found.random - replaced[:, None], gap).value,
            ("draw",),
            "the same of random sets with as many heads and feed-forward layers",
            OURS,
        ),
        "incomplete": (
            share(circuit - network, gap).value,
            ("half",),
            "what the circuit without half of itself tells more than the network without it",
            WANG,
        ),
        "gap": (
            share(gap, np.ones(len(gap))),
            (),
            "logit difference of prompts less that of corrupted ones",
            WANG,
        ),
    }
    rows |= _of_edges(found)
    right = accuracy(found.prompts.items, found.clean, replicates=replicates)
    return labelled(
        {"accuracy": accuracy_variable(right)}
        | {
            name: Variable(value, dims, words, "logits" if name == "gap" else "1", source)  # type: ignore[arg-type]
            for name, (value, dims, words, source) in rows.items()
        },
        coords={
            "node": found.nodes.keys(names),
            "replacement": REPLACEMENTS,
            "order": ORDERS,
            "share": SHARES,
        }
        | ({} if found.edges is None else {"reader": reader_keys(found.nodes, names)}),
    ).assign_attrs(
        about(found.prompts, right),
        choosing=len({*found.prompts.items} - {*found.tried}),
        tried=len({*found.tried}),
        size=size,
        faithful=FAITHFUL,
        width=found.width,
        beside=int(found.beside),
    )


def _of_edges(found: Discovery) -> dict[str, tuple[object, tuple[str, ...], str, str]]:
    if found.edges is None:
        return {}
    score = np.where(found.edges.real, found.edges.scores.sum(0) / found.gap.sum(), np.nan)
    words = "share of the logit difference that the edge moves, by integrated gradients"
    rows: dict[str, tuple[object, tuple[str, ...], str, str]] = {
        "edge_score": (score, ("node", "reader"), words, HANNA)
    }
    if found.edges.curves is None:
        return rows
    empty, gap = found.empty[:, 0], found.whole - found.empty[:, 0]
    curves = _draws(found, found.edges.curves - empty[:, None, None], gap)
    cpr, cmd = areas(np.moveaxis(curves, -1, 0))
    over = ("order", "share")
    return rows | {
        "edge_faithfulness": (
            _estimate(found, curves),
            over,
            f"{FROM} that the first edges tell",
            MUELLER,
        ),
        "edge_cpr": (_estimate(found, cpr[..., 0]), (), "area below that curve", MUELLER),
        "edge_cmd": (
            _estimate(found, cmd[..., 1]),
            (),
            "area between the curve of the largest scores of edges and 1",
            MUELLER,
        ),
    }


def _draws(found: Discovery, values: Float64, of: Float64) -> Float64:
    """[draw, …] Σ values [tried, …] / Σ of [tried, …], its first axes; then without each item."""
    kept = left_out(found.tried, replicates=REPLICATES)
    below = means_over(kept, of)
    more = values.ndim - of.ndim
    return np.asarray(means_over(kept, values) / below.reshape(*below.shape, *[1] * more))


def _estimate(found: Discovery, draws: Float64) -> Estimate:
    few = len(set(found.tried)) < FEWEST_ITEMS
    return without_interval(draws[0], draws) if few else estimate(draws)


def _score(found: Discovery, replicates: int) -> Estimate:
    """[node] shares of the logit difference between clean and corrupted prompts, of all items."""
    return share_over(found.prompts.items, found.scores, found.gap, replicates=replicates)


def _included(found: Discovery, size: int) -> Float64:
    """[node] how often it is among the first nodes, over resampled items, as many as chose."""
    items = np.array(found.prompts.items)
    unique = np.unique(items)
    of_items = np.stack([found.scores[items == item].sum(0) for item in unique])
    many, times = len({*items[found.choosing]}), np.zeros(found.scores.shape[1])
    for draw in range(RESAMPLES):
        some = generator(found.seed, "resampled items", str(draw)).choice(len(unique), many)
        times[in_order(of_items[some].sum(0))[:size]] += 1
    return times / RESAMPLES
