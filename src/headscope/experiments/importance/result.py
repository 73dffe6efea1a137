"""Makes labelled means of the sums over examples of a run of `headscope importance`.

Two groups: `gradients`, |∂loss/∂α| by the category of the key, beside the attention that goes
there; and `importance`, one number per head and method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from headscope.core.accumulators import Float64, Sums, bootstrap_weights, estimate, ratio
from headscope.core.labelled import Variable, labelled
from headscope.experiments.importance.objectives import Objective
from headscope.model.batch import CATEGORIES
from headscope.run.store import State

CLARK = "Clark et al. 2019, Figure 3"
OURS = "headscope"
MICHEL = "Michel et al. 2019, §4.1"
HAO = "Hao et al. 2021, §4"
SOURCES = {
    "gradient": CLARK, "michel": MICHEL, "michel_normalised": MICHEL, "slope_zero": OURS,
    "slope_uniform": OURS, "attattr": HAO,
}  # fmt: skip
METHODS = tuple(SOURCES)


@dataclass
class ImportanceTotals:
    """Weighted sums over all examples; each name is an array of what one example gives.

    sums       by name, [replicate + 1, *cell]
    documents  ids seen
    """

    replicates: int
    seed: int
    sums: dict[str, Sums] = field(default_factory=dict)
    documents: set[str] = field(default_factory=set)

    def add(self, state: State, documents: Sequence[str]) -> None:
        """Add what some examples gave: arrays [example, *cell] by name."""
        weights = bootstrap_weights(documents, replicates=self.replicates, seed=self.seed)
        self.documents.update(documents)
        for name, values in {**state, "one": np.ones(len(documents))}.items():
            if name not in self.sums:
                self.sums[name] = Sums.zeros(*values.shape[1:], replicates=self.replicates)
            self.sums[name].add(values, weights)

    def __getitem__(self, name: str) -> Float64:
        """[replicate + 1, *cell] of one name."""
        return self.sums[name].sums

    def mean(self, name: str) -> Float64:
        """[replicate + 1, *cell] mean over examples."""
        one = self["one"]
        return ratio(self[name], one.reshape(-1, *[1] * (self[name].ndim - 1)))  # [replicate, 1, …]


def per_example(state: State) -> State:
    """The numbers of each example that are summed over examples."""
    found = {
        **state,
        "michel": np.abs(state["product"]),
        "slope_zero": -state["product"],
        "slope_uniform": state["even"] - state["product"],
    }
    for name in ("product", "even"):
        del found[name]
    if "attribution" in state:
        total = state["attribution_sum"].sum(-1)  # [example, layer]
        found["incomplete"] = np.abs(total - state["change"])
        found["change"] = np.abs(state["change"])
        del found["attribution_sum"]
    return found


def draws_of(totals: ImportanceTotals, methods: Sequence[str]) -> Float64:
    """[replicate + 1, layer, head, method] the importance of every head."""
    michel = totals.mean("michel")  # [replicate, layer, head]
    length = np.linalg.norm(michel, axis=-1, keepdims=True)
    edges = totals["edges"].sum(-1)[..., None]  # [replicate, layer, 1]
    found = {
        "gradient": ratio(totals["magnitude"].sum(-1), edges),
        "michel": michel,
        "michel_normalised": ratio(michel, length),
    }
    means = {"slope_zero": "slope_zero", "slope_uniform": "slope_uniform", "attattr": "attribution"}
    found |= {name: totals.mean(means[name]) for name in methods if name in means}
    return np.stack([found[name] for name in methods], -1)  # [replicate, layer, head, method]


def gradients_result(totals: ImportanceTotals, objective: Objective) -> xr.Dataset:
    """The group `gradients`."""
    n, unit = len(totals.documents), objective.units
    edges = totals["edges"][:, :, None]  # [replicate, layer, 1, category]
    queries = totals["queries"][:, None, None, None]
    heads = totals["magnitude"].shape[2]
    both, of_layer = ("layer", "head", "category"), ("layer", "category")
    layer = totals["magnitude"].sum(2)  # [replicate, layer, category]

    def of(draws: Float64, dims: Sequence[str], text: str, units: str, source: str) -> Variable:
        return Variable(estimate(draws, documents=n), dims, text, units, source)

    there = np.broadcast_to(totals["edges"][:1, :, None] > 0, totals["magnitude"][:1].shape)
    attention = np.where(there, ratio(totals["attention"], queries), np.nan)
    by_query = np.where(there, ratio(totals["magnitude"], queries), np.nan)
    variables = {
        "magnitude": of(
            ratio(totals["magnitude"], edges), both, "mean |∂loss/∂α| of an edge", unit, CLARK
        ),
        "magnitude_by_query": of(
            by_query, both, "|∂loss/∂α| summed over the keys, mean over queries", unit, CLARK
        ),
        "attention": of(attention, both, "attention to the category", "probability", CLARK),
        "layer_magnitude": of(
            ratio(layer, heads * totals["edges"]), of_layer,
            "mean |∂loss/∂α| of an edge, over all heads", unit, CLARK,
        ),
        "layer_attention": of(
            attention.mean(2), of_layer, "attention to the category, mean over heads",
            "probability", CLARK,
        ),
        "loss": of(totals.mean("loss"), (), f"mean {objective.name}", unit, OURS),
    }  # fmt: skip
    found = labelled(variables, coords={"category": list(CATEGORIES)})
    return found.assign_attrs(
        loss_name=objective.name, examples=int(totals["one"][0]),
        reduction="of each example its own loss; sums over examples divided by sums of edges, or "
        "of queries",
    )  # fmt: skip


def importance_result(
    totals: ImportanceTotals, methods: Sequence[str], objective: Objective, *, steps: int
) -> xr.Dataset:
    """The group `importance`, without the comparison with an ablation."""
    n, draws = len(totals.documents), draws_of(totals, methods)
    source = "; ".join(dict.fromkeys(SOURCES[name] for name in methods))
    variables = {
        "head_importance": Variable(
            estimate(draws, documents=n), ("layer", "head", "method"), "importance of the head",
            "1", source,
        )
    }  # fmt: skip
    if "attattr" in methods:
        text = "mean |F(A) − F(0)| when a layer attends to nothing"
        variables["output_change"] = Variable(totals.mean("change")[0], ("layer",), text, "1", HAO)
        text = "mean |sum of the attributions − (F(A) − F(0))|, the error of the integral"
        variables["completeness_error"] = Variable(
            totals.mean("incomplete")[0], ("layer",), text, "1", OURS
        )
    found = labelled(variables, coords={"method": list(methods)})
    return found.assign_attrs(loss_name=objective.name, steps=steps, examples=int(totals["one"][0]))
