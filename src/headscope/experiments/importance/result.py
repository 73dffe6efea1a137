"""Sums gradients over examples, checks them, and makes labelled results.

Two groups: `gradients`, |∂loss/∂α| by the category of the key, beside the attention that goes
there; and `importance`, one number per head and method.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr

from headscope.claims.reading import NOTHING_SAID
from headscope.claims.verdict import above, below
from headscope.core.accumulators import Float64, Sums, groups_of, ratio
from headscope.core.intervals import SHARE, estimate
from headscope.core.results import Variable, at, labelled
from headscope.core.wording import number, percent
from headscope.corpus.document import Example
from headscope.errors import ModelError
from headscope.experiments.importance.gradients import LayerGradient, Streaming, frozen
from headscope.experiments.importance.settings import CLARK, HAO, OURS, SOURCES
from headscope.experiments.importance.task_loss import Objective, TaskLoss
from headscope.model.attention import AttentionCall, visible
from headscope.model.batch import CATEGORIES, Batch, to_float64
from headscope.model.families.sites import registered
from headscope.model.instrument import Instrument
from headscope.model.model import Model, run_network
from headscope.run.shard_files import State

TOLERANCE = 1e-3  # of the largest number of any head; float32 rounding stays well below it


class GradientSums:
    """Sums of one batch's gradients, as an observer; padding and masked edges have weight 0.

    magnitude  [example, layer, head, category]  Σ |∂loss/∂α| over the edges to such keys
    attention  [example, layer, head, category]  Σ α over the same
    edges      [example, layer, category]        how many these are
    product    [example, layer, head]            Σ α ∂loss/∂α over all edges, signed
    even       [example, layer, head]            the same with 1/n for α, n being the keys that a
                                                 query may attend to
    """

    def __init__(self, batch: Batch, *, layers: int, heads: int) -> None:
        self.batch = batch
        size, count = len(batch.examples), len(CATEGORIES)
        self.magnitude, self.attention = np.zeros((2, size, layers, heads, count))
        self.edges = np.zeros((size, layers, count))
        self.product, self.even = np.zeros((2, size, layers, heads))
        self._masks: dict[int, tuple[torch.Tensor | None, torch.Tensor | None, Float64]] = {}

    def __call__(self, layer: LayerGradient) -> None:
        """Add one layer."""
        at, real = layer.layer, self.batch.mask
        size = layer.gradient.abs()  # [example, head, query, key]
        seen, edges = self._seen(layer)
        if seen is not None:
            size *= seen
        self.magnitude[:, at] = self._by_category(size)
        self.attention[:, at] = self._by_category(layer.attention)
        self.edges[:, at] = edges
        self.product[:, at] = to_float64((layer.product * real[:, None]).sum(-1))
        self.even[:, at] = to_float64(self._evenly(layer.gradient, seen))

    def state(self) -> State:
        """The arrays by name."""
        names = ("magnitude", "attention", "edges", "product", "even")
        return {name: getattr(self, name) for name in names}

    def _by_category(self, values: torch.Tensor) -> Float64:
        """[example, head, category] sums over real queries and the keys of each category."""
        dtype = torch.promote_types(values.dtype, torch.float32)
        queries = self.batch.mask[:, None, None].to(dtype)  # [example, 1, 1, query]
        columns = queries @ values.to(dtype)  # [example, head, 1, key]
        return to_float64(columns @ self.batch.categories[:, None].to(dtype))[:, :, 0]

    def _evenly(self, gradient: torch.Tensor, seen: torch.Tensor | None) -> torch.Tensor:
        """[example, head] Σ ∂loss/∂α / n over the edges, where the query sees n keys."""
        real = self.batch.mask.to(gradient.dtype)  # [example, token]
        if seen is not None:
            rows = (gradient * seen).sum(-1) / seen.sum(-1).clamp_min(1)  # [example, head, query]
            return (rows * real[:, None]).sum(-1)
        columns = (real[:, None, None] @ gradient)[:, :, 0]  # [example, head, key]
        return (columns * real[:, None]).sum(-1) / real.sum(-1, keepdim=True)

    def _seen(self, layer: LayerGradient) -> tuple[torch.Tensor | None, Float64]:
        """[example, 1, query, key] 1 for an edge, or None where only padding is masked; and the
        number of edges [example, category].
        """
        key = id(layer.mask)
        if key not in self._masks:  # layers share masks; kept, so that no other gets its id
            real = self.batch.mask
            seen = visible(layer.mask, layer.attention)[:, 0] & real[:, None]  # [example, q, k]
            there = seen & real[..., None]
            more = bool((there != real[..., None] & real[:, None]).any())
            weights = there.to(torch.float64).sum(1, keepdim=True)  # [example, 1, key]
            edges = to_float64(weights @ self.batch.categories.double())[:, 0]
            kept = there[:, None].to(layer.gradient.dtype) if more else None
            self._masks[key] = (layer.mask, kept, edges)
        return self._masks[key][1:]


def check_gradients(model: Model, examples: Sequence[Example], objective: Objective) -> None:
    """Raises ModelError unless Σ α ∂loss/∂α of every head equals that of plain autograd.

    Families off the registry are followed by plain autograd anyway.
    """
    if not registered(model.network) or model.network.config.is_encoder_decoder:
        return
    places = sorted(range(len(examples)), key=lambda at: len(examples[at]))[:2]
    shape, network = model.shape, model.network
    batch = model.batch([examples[at] for at in places])
    gather = GradientSums(batch, layers=shape.layers, heads=shape.heads)
    maps: list[torch.Tensor] = []

    def ask(call: AttentionCall) -> None:
        if not call.attention.requires_grad:
            call.attention = call.attention.clone().requires_grad_()
        maps.append(call.attention)

    with objective.asking(network, places):
        with Streaming(network, gather, shape.names) as stream:
            logits = run_network(network, *batch.inputs).logits
            if stream.layers != shape.layers:
                raise ModelError(
                    f"{type(network).__name__} ran {stream.layers} attentions in {shape.layers} "
                    "layers; wanted one in each, in order: please report this model"
                )
            stream.backward(objective.losses(logits, places).sum())
        with torch.enable_grad(), frozen(network), Instrument(network, interventions=[ask]):
            answer = run_network(network, *batch.inputs)
            loss = objective.losses(answer.logits, places).sum()
            gradients = torch.autograd.grad(loss, maps)
    products = [
        ((a.detach() * g).sum(-1) * batch.mask[:, None]).sum(-1)
        for a, g in zip(maps, gradients, strict=True)
    ]
    wanted = torch.stack(products, 1).double().cpu()  # [example, layer, head]
    if not wanted.isfinite().all():
        return  # the loss itself is not: said where it is computed
    gap = float((torch.from_numpy(gather.product) - wanted).abs().max())
    allowed = max(TOLERANCE, 16 * torch.finfo(network.dtype).eps)
    if not gap <= allowed * float(wanted.abs().max()):
        raise ModelError(
            f"the gradients of {type(network).__name__} are {gap:.1e} away from those of autograd "
            f"(largest: {float(wanted.abs().max()):.1e}); refusing to show numbers that may "
            "be wrong; please report this model"
        )


@dataclass
class ImportanceTotals:
    """Sums over all examples, by name.

    sums       by name
    documents  ids seen, and their places
    """

    replicates: int
    sums: dict[str, Sums] = field(default_factory=dict)
    documents: dict[str, int] = field(default_factory=dict)

    def add(self, state: State, documents: Sequence[str]) -> None:
        """Add the arrays [example, *cell] of some examples, by name."""
        for document in documents:
            self.documents.setdefault(document, len(self.documents))
        groups = groups_of(documents, replicates=self.replicates, listed=self.documents)
        for name, values in {**state, "one": np.ones(len(documents))}.items():
            if name not in self.sums:
                self.sums[name] = Sums.zeros(*values.shape[1:], replicates=self.replicates)
            self.sums[name].add(values, groups)

    def __getitem__(self, name: str) -> Float64:
        """[replicate + 1, *cell] the sum of one name."""
        return self.sums[name].sums

    def mean(self, name: str) -> Float64:
        """[replicate + 1, *cell] mean over examples."""
        one = self["one"]
        return ratio(self[name], one.reshape(-1, *[1] * (self[name].ndim - 1)))  # [replicate, 1, …]


def per_example(state: State) -> State:
    """The quantities of each example that are summed over examples."""
    numbers = dict(state)
    product, even = numbers.pop("product"), numbers.pop("even")
    numbers["right"] = np.exp(-numbers["loss"])
    numbers |= {"michel": np.abs(product), "slope_zero": -product, "slope_uniform": even - product}
    if "attribution" in state:
        total = numbers.pop("attribution_sum").sum(-1)  # [example, layer]
        numbers["incomplete"] = np.abs(total - state["change"])
        numbers["change"] = np.abs(state["change"])
    return numbers


def draws_of(totals: ImportanceTotals, methods: Sequence[str]) -> Float64:
    """[replicate + 1, layer, head, variant] the importance of every head."""
    michel = totals.mean("michel")  # [replicate, layer, head]
    length = np.linalg.norm(michel, axis=-1, keepdims=True)
    edges = totals["edges"].sum(-1)[..., None]  # [replicate, layer, 1]
    draws = {
        "gradient": ratio(totals["magnitude"].sum(-1), edges),
        "michel": michel,
        "michel_normalised": ratio(michel, length),
    }
    for name in set(methods) - set(draws):
        draws[name] = totals.mean("attribution" if name == "attattr" else name)
    return np.stack([draws[name] for name in methods], -1)  # [replicate, layer, head, variant]


def worse_than_guessing(totals: ImportanceTotals, objective: Objective, outputs: int) -> str:
    """Why nothing is claimed of a model's heads: its answers are surely worse than a guess; ""
    otherwise, and of a regression, whose numbers may be on any scale.

    outputs  classes of the task, or tokens of the vocabulary
    """
    if isinstance(objective, TaskLoss):
        right = at(estimate(totals.mean("right"), bounds=SHARE))
        if objective.task.is_regression or not below(*right, 1 / outputs).holds:
            return ""
        return (
            f"The mean probability of the right class is {percent(*right)}, surely below the "
            f"{percent(1 / outputs)} of a guess: probably the label names of the model are "
            f"exchanged, or it was trained for another task. {NOTHING_SAID}"
        )
    loss, guess = at(estimate(totals.mean("loss"))), float(np.log(outputs))
    if not above(*loss, guess).holds:
        return ""
    return (
        f"The {objective.name} is {number(*loss)}, surely above the {number(guess)} of a model "
        f"that takes all {outputs:,} tokens for equally likely: probably the tokenizer is not the "
        f"one that it was trained with, or it was not trained. {NOTHING_SAID}"
    )


def gradients_result(totals: ImportanceTotals, objective: Objective) -> xr.Dataset:
    """The group `gradients`."""
    magnitude, edges = totals["magnitude"], totals["edges"]
    queries, unit = totals["queries"][:, None, None, None], objective.units
    both, of_layer = ("layer", "head", "category"), ("layer", "category")
    there = np.broadcast_to(edges[:1, :, None] > 0, magnitude[:1].shape)
    attention, by_query = (
        np.where(there, ratio(total, queries), np.nan) for total in (totals["attention"], magnitude)
    )
    heads, of_edge = magnitude.shape[2], "mean |∂loss/∂α| of an edge"
    rows: dict[str, tuple[Float64, Sequence[str], str, str]] = {
        "magnitude": (ratio(magnitude, edges[:, :, None]), both, of_edge, unit),
        "magnitude_by_query": (
            by_query,
            both,
            "|∂loss/∂α| summed over the keys, mean over queries",
            unit,
        ),
        "attention": (attention, both, "attention to the category", "probability"),
        "layer_magnitude": (
            ratio(magnitude.sum(2), heads * edges),
            of_layer,
            f"{of_edge}, over all heads",
            unit,
        ),
        "layer_attention": (
            attention.mean(2),
            of_layer,
            "attention to the category, mean over heads",
            "probability",
        ),
        "loss": (totals.mean("loss"), (), f"mean {objective.name}", unit),
    }
    variables = {
        name: Variable(
            estimate(draws, bounds=SHARE, sizes=queries.reshape(-1, *[1] * (draws.ndim - 1)))
            if units == "probability"
            else estimate(draws),
            dims,
            text,
            units,
            OURS if name == "loss" else CLARK,
        )
        for name, (draws, dims, text, units) in rows.items()
    }
    result = labelled(variables, coords={"category": list(CATEGORIES)})
    return result.assign_attrs(
        loss_name=objective.name,
        examples=int(totals["one"][0]),
        reduction="of each example its own loss; sums over examples divided by sums of edges, or "
        "of queries",
    )


def importance_result(
    totals: ImportanceTotals, methods: Sequence[str], objective: Objective, *, steps: int
) -> xr.Dataset:
    """The group `importance`, without the comparison with an ablation."""
    draws = estimate(draws_of(totals, methods))
    source = "; ".join(dict.fromkeys(SOURCES[name] for name in methods))
    dims, text = ("layer", "head", "variant"), "importance of the head"
    variables = {"head_importance": Variable(draws, dims, text, "1", source)}
    if "attattr" in methods:
        text = "mean |F(A) − F(0)| when a layer attends to nothing"
        variables["output_change"] = Variable(totals.mean("change")[0], ("layer",), text, "1", HAO)
        text = "mean |sum of the attributions − (F(A) − F(0))|, the error of the integral"
        errors = totals.mean("incomplete")[0]
        variables["completeness_error"] = Variable(errors, ("layer",), text, "1", OURS)
    result = labelled(variables, coords={"variant": list(methods)})
    return result.assign_attrs(
        loss_name=objective.name, steps=steps, examples=int(totals["one"][0])
    )
