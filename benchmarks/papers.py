"""How would the papers' own code do it? Its steps, written afresh, as baselines.

Clark et al. (2019) first write every map to disk in half precision, then load and average them;
their divergences are a numpy loop over heads. Kobayashi et al. (2020) build the vectors α f(x) for
every head and pair of tokens and take norms. The numbers agree with headscope's: a test says so.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import BertModel

from benchmarks.inputs import CLS, COMMA, SEP, STOP, Inputs
from headscope.model.model import forward

Array = npt.NDArray[Any]
Documents = list[tuple[Array, Array]]  # ids [token] and maps [layer, head, query, key] of each
SMOOTHING = 0.001  # of the divergences: share of uniform attention, against log 0
EPSILON = 1e-4  # of the entropies, likewise


# --- Clark et al. ---------------------------------------------------------------------------


def extract(network: BertModel, inputs: Inputs, file: Path, *, dtype: Any = np.float16) -> None:
    """Write all maps of all examples to a pickle; the network is eager and outputs them."""
    documents: Documents = []
    for rows in inputs.rows:
        batch = inputs.batch(rows)
        output = forward(network, batch.input_ids, batch.mask, batch.segment_ids)
        maps = torch.stack(output.attentions).numpy()  # [layer, example, head, query, key]
        for row, example in enumerate(batch.examples):
            n = len(example)
            documents.append((example.input_ids, maps[:, row, :, :n, :n].astype(dtype)))
    with file.open("wb") as out:
        pickle.dump(documents, out, -1)


def average(file: Path) -> dict[str, Array]:
    """{target or entropy: [layer, head]} means over the examples of a pickle of ours."""
    with file.open("rb") as source:
        documents: Documents = pickle.load(source)
    totals: dict[str, Array] = {}
    for ids, maps in documents:
        for name, value in {**_targets(ids, maps), **_entropies(maps)}.items():
            totals[name] = totals.get(name, 0) + value / len(documents)
    return totals


def _targets(ids: Array, maps: Array) -> dict[str, Array]:
    """Mean attention to neighbours and special tokens, one example."""
    n = len(ids)
    wide = maps.astype(np.float32)
    seps = ids == SEP
    kinds = {"cls": ids == CLS, "sep": seps, "punctuation": np.isin(ids, (STOP, COMMA))}
    moves = {"self": 0, "previous": -1, "next": 1}
    found = {k: (wide * np.eye(n, k=v, dtype=np.float32)).sum((2, 3)) / n for k, v in moves.items()}
    found |= {k: wide[..., where].sum((2, 3)) / n for k, where in kinds.items()}
    found["sep_from_sep"] = wide[:, :, seps][..., seps].sum((2, 3)) / seps.sum()
    found["sep_from_other"] = wide[:, :, ~seps][..., seps].sum((2, 3)) / (~seps).sum()
    return found


def _entropies(maps: Array) -> dict[str, Array]:
    """Mean entropy over queries, and that of the first, one example."""
    smoothed = (1 - EPSILON) * maps.astype(np.float32) + EPSILON / maps.shape[-1]
    nats = -(smoothed * np.log(smoothed)).sum(-1)  # [layer, head, query]
    return {"entropy": nats.mean(-1), "entropy_cls": nats[..., 0]}


def maps_of(network: BertModel, inputs: Inputs) -> list[Array]:
    """[unit, query, key] all maps of each example, which have batches of their own."""
    found = []
    for rows in inputs.rows:
        batch = inputs.batch(rows)
        output = forward(network, batch.input_ids, batch.mask, batch.segment_ids)
        n = batch.lengths[0]
        found.append(torch.cat(output.attentions, 1)[0, :, :n, :n].numpy())
    return found


def divergences(maps: list[Array], *, heads: int | None = None) -> Array:
    """[unit, unit] Σ over tokens and examples of the divergence; the first `heads` rows alone."""
    total: Array = np.zeros(())
    for flat in maps:
        units = len(flat) if heads is None else heads
        total = total + np.stack([_from_one(flat, unit) for unit in range(units)])
    return total


def _from_one(maps: Array, unit: int) -> Array:
    """[unit] divergence of one head of an example from every head."""
    n = maps.shape[-1]
    here = (1 - SMOOTHING) * maps[unit : unit + 1] + SMOOTHING / n
    there = (1 - SMOOTHING) * maps + SMOOTHING / n
    middle = (here + there) / 2
    nats: Array = -here * np.log(middle / here)
    nats += -there * np.log(middle / there)
    return (nats / 2).sum(-1).sum(-1)


# --- Kobayashi et al. -----------------------------------------------------------------------


def norms(network: BertModel, inputs: Inputs) -> dict[str, Array]:
    """{quantity: [layer, head, category]} through α f(x) in full; one example at a time.

    Attention and norms summed over the keys of a category, mean over queries; the categories are
    [CLS], [SEP], punctuation and the rest.
    """
    totals: dict[str, Array] = {}
    for example in inputs.examples:
        ids = torch.from_numpy(example.input_ids)[None]
        with torch.inference_mode():
            output = network(input_ids=ids, output_hidden_states=True)
            kinds = _categories(ids[0])
            for number, layer in enumerate(network.encoder.layer):
                maps, stream = output.attentions[number][0], output.hidden_states[number]
                for name, value in _layer_norms(layer.attention, maps, stream, kinds).items():
                    room = (network.config.num_hidden_layers, *value.shape)
                    total = totals.setdefault(name, np.zeros(room))
                    total[number] += value.double().numpy() / len(inputs.examples)
    return totals


def _layer_norms(
    attention: Any, maps: torch.Tensor, stream: torch.Tensor, kinds: torch.Tensor
) -> dict[str, torch.Tensor]:
    """One layer; maps [head, query, key], stream [1, token, model], kinds [token, category]."""
    heads, tokens, _ = maps.shape
    value = attention.self.value(stream)[0].view(tokens, heads, -1)  # [key, head, dim]
    output = attention.output.dense.weight.view(stream.shape[-1], heads, -1)  # [model, head, dim]
    vectors = torch.einsum("khd,mhd->hkm", value, output)  # [head, key, model]
    weighted = torch.einsum("hqk,hkm->hqkm", maps, vectors)  # [head, query, key, model]
    by_head = weighted.norm(dim=-1)  # [head, query, key]
    together = weighted.sum(0).norm(dim=-1)  # [query, key]
    return {
        "attention": (maps @ kinds).mean(1),
        "value_norm": vectors.norm(dim=-1) @ (kinds / kinds.sum(0).clamp_min(1)),
        "weighted_norm": (by_head @ kinds).mean(1),
        "layer_weighted_norm": (together @ kinds).mean(0),
    }


def _categories(ids: torch.Tensor) -> torch.Tensor:
    """[token, category] 0/1."""
    named = torch.stack([ids == CLS, ids == SEP, (ids == STOP) | (ids == COMMA)], -1)
    return torch.cat([named, ~named.any(-1, keepdim=True)], -1).float()
