"""Numbers that claims read off runs: by name, with the bootstrap's draws behind them.

Draws are [replicate + 1, …]: first the number on the data, then on every resample of its documents.
So any statistic of them (a mean over heads, the largest of them, a difference of layers) has an
interval of its own. A run that kept no draws has the data alone, and its numbers have no interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate, Float64, estimate, estimate_by_spread, ratio
from headscope.core.labelled import DRAWS
from headscope.core.results import LIMITS, documents, pick
from headscope.core.wording import fixed
from headscope.run.finished_run import Run

# Analyses by name; a run of one, or a figure of it, goes by the same name.
SURFACE, ENTROPY, DIVERGENCE = "surface", "entropy", "divergence"
NORMS, MIXING, DEPENDENCY = "norms", "mixing", "dependency"
PAPER_DEPTH = 12  # layers of the model that the papers looked at
PERCENTILES_FROM = 100  # draws; the tail quantiles of fewer say little


class Unmeasured(Exception):
    """A number, or a run, that cannot be had; the text says what it needs.

    brief  the same in a few words; by default the text itself
    """

    def __init__(self, needs: str, brief: str = "") -> None:
        super().__init__(needs)
        self.brief = brief or needs


@dataclass(frozen=True)
class Measured:
    """The number of a claim, read off our runs.

    value, low, high  in the unit of the claim, but shares where that is "%" or "points"; NaN: none
    n                 over how many of what: "60 documents"
    holds             whether the direction of the claim holds; None where it states none
    detail            what stands beside the number: heads by name, depth, other numbers
    elsewhere         which other data these are, if not of the paper's kind: then no number is held
                      against the published one
    count             documents, or words of a relation, behind it
    head              (layer, head) from 0, of a number of one head
    p                 against chance, where the claim asks for that
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: str = ""
    holds: bool | None = None
    detail: str = ""
    elsewhere: str = ""
    count: int = 0
    head: tuple[int, int] | None = None
    p: float = math.nan

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval exist."""
        return math.isfinite(self.low) and math.isfinite(self.high)


class PaperRuns:
    """The runs that a claim may read, by name.

    own     whether the model is the paper's own
    absent  why other runs are missing, by name
    others  for keys of data that are not of the paper's kind, what they are instead
    """

    def __init__(
        self,
        runs: Mapping[str, Run],
        *,
        own: bool = False,
        absent: Mapping[str, str] | None = None,
        others: Mapping[str, str] | None = None,
    ) -> None:
        self.runs, self.own = dict(runs), own
        self.absent, self.others = dict(absent or {}), dict(others or {})

    def __contains__(self, name: object) -> bool:
        """Whether there is a run of that name."""
        return name in self.runs

    def run(self, name: str) -> Run:
        """A run; raises Unmeasured with the reason where it is missing."""
        if name not in self.runs:
            raise Unmeasured(self.absent.get(name, f"needs {name}"))
        return self.runs[name]

    def results(self, name: str, analysis: str) -> xr.Dataset:
        """The results of an analysis of a run; raises Unmeasured."""
        return results_of(self.run(name), analysis)


def results_of(run: Run, analysis: str) -> xr.Dataset:
    """The results of an analysis; raises Unmeasured where the run is without it."""
    if analysis not in run:
        needs = f"needs {analysis}, which cannot be had of this model or these data"
        raise Unmeasured(needs, f"no {analysis} in its run")
    return run[analysis]


# --- draws and intervals --------------------------------------------------------------------


def draws_of(results: xr.Dataset, variable: str, **choice: Any) -> Float64:
    """[replicate + 1, …] the draws of a variable; [1, …] where none were kept.

    choice  one coordinate value per dimension
    raises  Unmeasured where the results are without the variable
    """
    _check_variable(results, variable)
    if variable + DRAWS not in results:
        return np.asarray(pick(results[variable], **choice).values, np.float64)[None]
    return np.asarray(pick(results[variable + DRAWS], **choice).values, np.float64)


def stored(results: xr.Dataset, variable: str, **choice: Any) -> tuple[float, float, float]:
    """A number with the interval that the results hold; NaN where there is none."""
    _check_variable(results, variable)
    low, high = (
        float(pick(results[variable + end], **choice)) if variable + end in results else math.nan
        for end in LIMITS
    )
    return float(pick(results[variable], **choice)), low, high


def lower_end(number: tuple[float, float, float]) -> float:
    """The lower end of (value, low, high); the value where there is no interval."""
    return number[1] if math.isfinite(number[1]) else number[0]


def upper_end(number: tuple[float, float, float]) -> float:
    """The upper end of (value, low, high); the value where there is no interval."""
    return number[2] if math.isfinite(number[2]) else number[0]


def _check_variable(results: xr.Dataset, variable: str) -> None:
    if variable not in results:
        needs = f"needs {variable}, which these results do not have"
        raise Unmeasured(needs, f"no {variable.replace('_', ' ')} in its run")


def interval(draws: Float64, run: Run) -> Estimate:
    """The value [...] of draws [replicate + 1, ...] with its interval; by spread of a few draws."""
    few = len(draws) - 1 < min(PERCENTILES_FROM, int(run.tree.attrs.get("replicates", 0)))
    return (estimate_by_spread if few else estimate)(draws, documents=documents(run.tree))


def measured(
    draws: Float64, run: Run, *, above: float | None = None, **more: Any
) -> Measured:  # fmt: skip
    """The number of draws [replicate + 1], over the documents of the run.

    above  the direction of the claim holds if the number lies surely above this
    more   other fields of Measured
    """
    ends = interval(draws, run)
    fields = {"n": counted(run), "count": documents(run.tree), **more}
    if above is not None:
        fields["holds"] = surely_above(draws, run, above)
    return Measured(float(ends.value), float(ends.low), float(ends.high), **fields)


def surely_above(draws: Float64, run: Run, bound: float = 0.0) -> bool:
    """Whether the lower end of the interval is above; the value, where there is no interval."""
    ends = interval(draws, run)
    return lower_end((float(ends.value), float(ends.low), float(ends.high))) > bound


def counted(run: Run) -> str:
    """`60 documents`; of a task's data, examples."""
    many = str(run.tree.attrs.get("counted", "documents"))
    count = documents(run.tree)
    return f"{count:,} {many.removesuffix('s') if count == 1 else many}"


# --- numbers by name ------------------------------------------------------------------------


def attention(run: Run, target: str) -> Float64:
    """[replicate + 1, layer, head] attention to a target of `surface`."""
    return draws_of(results_of(run, SURFACE), "attention", target=target)


def entropies(run: Run, query: str) -> Float64:
    """[replicate + 1, layer, head] entropy of attention in nats; query: all or cls."""
    return draws_of(results_of(run, ENTROPY), "entropy", query=query)


def uniform_entropy(run: Run) -> Float64:
    """[replicate + 1] entropy of uniform attention in nats."""
    return draws_of(results_of(run, ENTROPY), "uniform")


def norms(run: Run, variable: str, **choice: str) -> Float64:
    """[replicate + 1, layer, head, …] weights and norms of `norms`."""
    return draws_of(results_of(run, NORMS), variable, **choice)


def mixing_ratio(run: Run, method: str) -> Float64:
    """[replicate + 1, layer] share of a layer's output that comes from other tokens."""
    return draws_of(results_of(run, MIXING), "ratio", method=method)


def attention_key(target: str) -> str:
    """How a comparison of two models calls the attention to a target of `surface`."""
    return f"{SURFACE}.attention.{target}"


# --- layers and heads -----------------------------------------------------------------------


def over_heads(draws: Float64) -> Float64:
    """[replicate + 1] mean over layers and heads of [replicate + 1, layer, head], NaN left out."""
    there = np.isfinite(draws)
    return ratio(np.where(there, draws, 0.0).sum((1, 2)), there.sum((1, 2)).astype(np.float64))


def layer_at(number: int, layers: int) -> int:
    """The 0-based layer at the depth of layer `number` (from 1) of PAPER_DEPTH."""
    return round((number - 1) * (layers - 1) / (PAPER_DEPTH - 1))


def layers_at(numbers: Sequence[int], layers: int) -> list[int]:
    """0-based layers at these depths, each once."""
    return sorted({layer_at(number, layers) for number in numbers})


def place_name(layer: int, head: int) -> str:
    """A head from 0-based places, as papers write it."""
    return f"L{layer + 1}·H{head + 1}"


def largest_first(values: Float64) -> list[tuple[int, int]]:
    """(layer, head) of values [layer, head], the largest first; NaN left out."""
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), axis=None, kind="stable")
    rows, columns = np.unravel_index(order, values.shape)
    there = np.isfinite(values[rows, columns])
    return [(int(r), int(c)) for r, c in zip(rows[there], columns[there], strict=True)]


def paper_head(runs: PaperRuns, values: Float64, head: tuple[int, int]) -> tuple[int, int]:
    """The paper's head (from 0) in the paper's model; in another, the one of the largest value."""
    if runs.own and head[0] < values.shape[0] and head[1] < values.shape[1]:
        return head
    heads = largest_first(values)
    if not heads:
        raise Unmeasured("the number does not exist for any head")
    return heads[0]


def percent_text(share: float, digits: int = 1) -> str:
    """A share as text: `12.3 %`."""
    return f"{fixed(100 * share, digits)} %"
