"""Assembles the group `discovery` from what was found by prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.terms import HANNA, MUELLER, OURS, WANG
from headscope.core.accumulators import REPLICATES, Float64, generator, left_out, means_over, ratio
from headscope.core.confidence import TAIL
from headscope.core.head_names import HeadNames
from headscope.core.intervals import (
    ANY,
    POSITIVE,
    Bounds,
    Estimate,
    estimate,
    without_interval,
)
from headscope.core.results import Variable, labelled
from headscope.experiments.circuits.discovery.edge_attribution import reader_keys
from headscope.experiments.circuits.discovery.finding import FAITHFUL, ORDERS, Discovery
from headscope.experiments.circuits.discovery.node_sets import REPLACEMENTS, SHARES, areas
from headscope.experiments.circuits.over_items import (
    FEWEST_ITEMS,
    about,
    accuracy,
    accuracy_variable,
    share_over,
)

RESAMPLES = 1000
USUAL = "corrupted"  # the kind that the circuit is found with
FROM = "share of the difference between the whole network and none of it"
# variable → its dimensions, what it is, whose it is; in shares of 1, but for `gap`
VARIABLES = {
    "score": (
        "node",
        "share of the logit difference that the node moves, by integrated gradients",
        HANNA,
    ),
    "included": (
        "node",
        "how often the node is among as many first ones, wordings, kinds of corrupted prompts and "
        "items resampled",
        OURS,
    ),
    "included_in_form": ("form node", "1 for as many first nodes of one wording", OURS),
    "included_in_kind": (
        "corruption node",
        "1 for as many first nodes of one kind of corrupted prompts",
        OURS,
    ),
    "member": ("node", "1 for nodes of the circuit", OURS),
    "needed": ("node", "what the circuit loses without it", WANG),
    "faithfulness": (
        "replacement order share",
        f"{FROM} that the first nodes tell",
        MUELLER,
    ),
    "cpr": ("replacement", "area below the curve", MUELLER),
    "cmd": ("replacement", "area between the curve of the largest scores and 1", MUELLER),
    "circuit_faithfulness": ("replacement", f"{FROM} that the circuit tells", MUELLER),
    "random_faithfulness": (
        "draw",
        "the same of random sets with as many heads and feed-forward layers",
        OURS,
    ),
    "incomplete": (
        "half",
        "what the circuit without half of itself tells more than the network without it",
        WANG,
    ),
    "gap": ("", "logit difference of prompts less that of corrupted ones", WANG),
    "edge_score": (
        "node reader",
        "share of the logit difference that the edge moves, by integrated gradients",
        HANNA,
    ),
    "edge_faithfulness": ("order share", f"{FROM} that the first edges tell", MUELLER),
    "edge_cpr": ("", "area below that curve", MUELLER),
    "edge_cmd": ("", "area between the curve of the largest scores of edges and 1", MUELLER),
}


def discovery_result(circuit: Discovery, names: HeadNames, *, replicates: int) -> xr.Dataset:
    """The group `discovery`; see `find_circuit` for what is in it."""
    right = accuracy(circuit.prompts.items, circuit.clean, replicates=replicates)
    numbers = _of_nodes(circuit, replicates) | _of_edges(circuit)
    variables = {"accuracy": accuracy_variable(right)}
    for name, value in numbers.items():
        dims, words, source = VARIABLES[name]
        units = "logits" if name == "gap" else "1"
        variables[name] = Variable(value, dims.split(), words, units, source)
    coords = {
        "node": circuit.nodes.keys(names),
        "replacement": REPLACEMENTS,
        "order": ORDERS,
        "share": SHARES,
        "form": list(dict.fromkeys(circuit.prompts.forms)),
        "corruption": [USUAL, *circuit.others],
    }
    if circuit.edges is not None:
        coords["reader"] = reader_keys(circuit.nodes, names)
    return labelled(variables, coords=coords).assign_attrs(
        about(circuit.prompts, right),
        choosing=len({*circuit.prompts.items} - {*circuit.tried}),
        tried=len({*circuit.tried}),
        size=int(circuit.member.sum()),
        faithful=FAITHFUL,
        width=circuit.width,
        beside=int(circuit.beside),
    )


def _of_nodes(circuit: Discovery, replicates: int) -> dict[str, Any]:
    whole, empty = circuit.whole, circuit.empty
    gap, gaps = whole - empty[:, 0], whole[:, None] - empty
    share = partial(share_over, circuit.tried, replicates=replicates)
    curves = _draws(circuit, circuit.curves - empty[:, :, None, None], gaps)
    cpr, cmd = areas(np.moveaxis(curves, -1, 0))
    needed = np.full((3, len(circuit.nodes)), np.nan)
    of_members = share(circuit.circuit[:, :1] - circuit.without, gap)
    needed[:, circuit.member] = [of_members.value, of_members.low, of_members.high]
    without, network = np.moveaxis(circuit.halves, 1, 0)
    items, size = circuit.prompts.items, int(circuit.member.sum())
    kinds = [circuit.scores, *circuit.others.values()]
    return {
        "score": share_over(items, circuit.scores, circuit.gap, replicates=replicates),
        "included": _included(circuit),
        "included_in_form": _of_forms(circuit),
        "included_in_kind": _first(np.stack([own.sum(0) for own in kinds]), size),
        "member": circuit.member.astype(float),
        "needed": Estimate(*needed),
        "faithfulness": _estimate(circuit, curves),
        "cpr": _estimate(circuit, cpr[..., 0]),
        "cmd": _estimate(circuit, cmd[..., 1], POSITIVE),
        "circuit_faithfulness": _estimate(circuit, _draws(circuit, circuit.circuit - empty, gaps)),
        "random_faithfulness": share(circuit.random - empty[:, :1], gap).value,
        "incomplete": share(without - network, gap).value,
        "gap": share(gap, np.ones(len(gap))),
    }


def _of_edges(circuit: Discovery) -> dict[str, Any]:
    edges = circuit.edges
    if edges is None:
        return {}
    score = np.where(edges.real, ratio(edges.scores.sum(0), circuit.gap.sum()), np.nan)
    if edges.curves is None:
        return {"edge_score": score}
    empty = circuit.empty[:, 0]
    curves = _draws(circuit, edges.curves - empty[:, None, None], circuit.whole - empty)
    cpr, cmd = areas(np.moveaxis(curves, -1, 0))
    return {
        "edge_score": score,
        "edge_faithfulness": _estimate(circuit, curves),
        "edge_cpr": _estimate(circuit, cpr[..., 0]),
        "edge_cmd": _estimate(circuit, cmd[..., 1], POSITIVE),
    }


def _draws(circuit: Discovery, values: Float64, of: Float64) -> Float64:
    """[draw, …] Σ values [tried, …] / Σ of [tried, …], its first axes; then without each item."""
    kept = left_out(circuit.tried, replicates=REPLICATES)
    below = means_over(kept, of)
    more = values.ndim - of.ndim
    return ratio(means_over(kept, values), below.reshape(*below.shape, *[1] * more))


def _estimate(circuit: Discovery, draws: Float64, bounds: Bounds = ANY) -> Estimate:
    few = len(set(circuit.tried)) < FEWEST_ITEMS
    return without_interval(draws[0], draws) if few else estimate(draws, bounds=bounds)


def _included(circuit: Discovery) -> Estimate:
    prompts, size = circuit.prompts, int(circuit.member.sum())
    many, items = len({*np.array(prompts.items)[circuit.choosing]}), len(set(prompts.items))
    how = {"size": size, "many": many, "seed": circuit.seed}
    scores = [circuit.scores, *circuit.others.values()]
    shares, worth = inclusion(prompts.items, prompts.forms, np.stack(scores), **how)
    if items < FEWEST_ITEMS:
        return without_interval(worth @ shares)
    return included(shares, worth, many=many, items=items)


def inclusion(
    items: Sequence[str],
    forms: Sequence[str],
    scores: Float64,
    *,
    size: int,
    many: int,
    seed: int,
) -> tuple[Float64, Float64]:
    """How often each node is among the first, where kinds of corrupted prompts, wordings and items
    are drawn again: [draw of kinds, node] in each, and [draw of kinds] how likely it is.

    items, forms  [prompt] of which item and of which wording it is
    scores        [kind, prompt, node]; with several kinds, each in shares of its largest node
    size, many    first nodes; items of a sample
    """
    from scipy.stats import multinomial  # not for who reads arguments only

    prompts = list(zip(items, forms, strict=True))
    units, named = list(dict.fromkeys(prompts)), list(dict.fromkeys(forms))
    of_units = np.zeros((len(units), *scores.shape[::2]))  # [unit, kind, node]
    np.add.at(of_units, [units.index(one) for one in prompts], scores.swapaxes(0, 1))
    form, counts = [named.index(form) for _, form in units], np.zeros((RESAMPLES, len(units)))
    rng = generator(seed, "resampled prompts")
    for row in counts:
        worth = np.bincount(rng.choice(len(named), len(named)), minlength=len(named))[form]
        np.add.at(row, rng.choice(len(units), many, p=worth / worth.sum()), 1)
    many_kinds = len(scores)
    if many_kinds > 1:
        largest = np.abs(of_units.sum(0)).max(-1, keepdims=True)
        of_units /= np.where(largest > 0, largest, 1)
    even = np.full(many_kinds, 1 / many_kinds)
    kinds, at = np.unique(rng.multinomial(many_kinds, even, RESAMPLES), axis=0, return_inverse=True)
    at = at.reshape(-1)
    drawn = np.einsum("dk,du,ukn->dn", kinds[at], counts, of_units, optimize=True)
    first = _first(drawn, size)
    worth = np.asarray(multinomial.pmf(kinds, many_kinds, even))
    shares = np.stack([first[at == one].mean(0) for one in range(len(kinds))])
    return shares, worth / worth.sum()


def included(shares: Float64, worth: Float64, *, many: int, items: int) -> Estimate:
    """How often a node is among the first of samples of `many` items, with its interval over items.

    It is where the sum of its scores passes that of another node. As far as sums are normal this
    happens in a share Φ(z) of samples, and z has the standard error √(many / items), whatever the
    scores are. Each draw of kinds has a z of its own; all are taken to err in the same direction.

    shares, worth  as `inclusion` gives them
    """
    from scipy.special import ndtr, ndtri, stdtrit  # not for who reads arguments only

    half = -stdtrit(items - 1, TAIL) * np.sqrt(many / (items - 1))
    edge = 0.5 / (RESAMPLES * worth[:, None])
    z = ndtri(shares.clip(edge, 1 - edge))
    low = worth @ np.where(shares > 0, ndtr(z - half), 0)
    return Estimate(worth @ shares, low, worth @ np.where(shares < 1, ndtr(z + half), 1))


def _first(scores: Float64, size: int) -> Float64:
    """[…, node] 1 for the nodes of the largest scores."""
    among = np.zeros_like(scores)
    first = np.argsort(-scores, axis=-1, kind="stable")[..., :size]
    np.put_along_axis(among, first, 1.0, -1)
    return among


def _of_forms(circuit: Discovery) -> Float64:
    """[form, node] 1 for the first nodes of a wording, as many as are in the circuit."""
    forms = np.array(circuit.prompts.forms)
    sums = [circuit.scores[forms == form].sum(0) for form in dict.fromkeys(circuit.prompts.forms)]
    return _first(np.stack(sums), int(circuit.member.sum()))
