"""Numbers that claims read off runs: by name, with the draws behind them.

Draws are [replicate + 1, …]: first the number on the data, then without each group of documents.
So any statistic of them (a mean over heads, the largest of them, a difference of layers) has an
interval of its own. A run that kept no draws has the data alone, and its numbers have no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np
import xarray as xr

from headscope.claims.control import controls
from headscope.claims.verdict import Verdict, above, below, largest_among, maybe_largest
from headscope.core import intervals
from headscope.core.accumulators import Float64
from headscope.core.confidence import TAIL, stretch
from headscope.core.head_names import HeadNames, names_of
from headscope.core.intervals import ANY, Bounds, Estimate, drawn_anew, estimate
from headscope.core.results import DRAWS, SIZES, at, counted, documents, largest_first, pick
from headscope.core.results import estimate as results_estimate
from headscope.core.wording import fixed
from headscope.run.store import Run

PAPER_DEPTH = 12  # layers of the model that the papers looked at
NETWORK, BEFORE, RULE = "network", "before", "rule"  # what a number is about
Ends = tuple[float, float, float]  # a value and its interval


class Unmeasured(Exception):
    """A number or a run that is not available; the text says what it needs, `brief` in short."""

    def __init__(self, needs: str, brief: str = "") -> None:
        super().__init__(needs)
        self.brief = brief or needs


@dataclass(frozen=True)
class Measured:
    """The number of a claim, read off our runs.

    value, low, high  in the unit of the claim, but shares where that is "%" or "points"; NaN: none
    n                 over how many of what: "60 documents"
    verdict           on the direction of the claim; None where it states none
    detail            what stands beside the number: heads by name, depth, other numbers
    elsewhere         which other data these are, if not of the paper's kind: then no number is
                      compared with the published one
    count             documents, or words of a relation, behind it
    head              (layer, head) from 0, of a number of one head
    p                 against chance, where the claim asks for that
    exact             whether no other inputs could change it, such as a count of the text
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: str = ""
    verdict: Verdict | None = None
    detail: str = ""
    elsewhere: str = ""
    count: int = 0
    head: tuple[int, int] | None = None
    p: float = math.nan
    exact: bool = False

    @property
    def exists(self) -> bool:
        """Whether there is a number, or a verdict on several that are in `detail`."""
        return not math.isnan(self.value) or (self.verdict is not None and bool(self.detail))

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval; twice the value where it is exact."""
        return (self.value, self.value) if self.exact else (self.low, self.high)


class PaperRuns:
    """The runs that a claim may read, by name.

    own     whether the model is the paper's own
    model   which of them, by its id on the hub
    absent  why other runs are missing, by name
    others  for keys of data that are not of the paper's kind, what they are instead
    limit   documents, or examples, of each run at most
    learned  by run, or task, of what was trained here on a part alone: from how many examples
    """

    def __init__(
        self,
        runs: Mapping[str, Run],
        *,
        own: bool = False,
        model: str = "",
        absent: Mapping[str, str] | None = None,
        others: Mapping[str, str] | None = None,
        limit: int | None = None,
        learned: Mapping[str, int] | None = None,
    ) -> None:
        self.runs, self.own, self.model = dict(runs), own, model
        self.absent, self.others = dict(absent or {}), dict(others or {})
        self.limit, self.learned = limit, dict(learned or {})

    def __contains__(self, name: object) -> bool:
        return name in self.runs

    @cached_property
    def untrained(self) -> dict[str, PaperRuns]:
        """The untrained networks in the controls of the runs, by name."""
        networks: dict[str, dict[str, Run]] = {}
        for name, run in self.runs.items():
            for network in controls(run.tree):
                networks.setdefault(str(network.name), {})[name] = Run(network, run.manifest)
        return {name: PaperRuns(runs, others=self.others) for name, runs in networks.items()}

    def run(self, name: str) -> PaperRun:
        """A run; raises Unmeasured with the reason where it is missing."""
        if name not in self.runs:
            raise Unmeasured(self.absent.get(name, f"needs {name}"))
        run = self.runs[name]
        return PaperRun(run.tree, run.manifest, run.path, self)


@dataclass(repr=False)
class PaperRun(Run):
    """A run as claims read it; `beside`: all runs of the paper."""

    beside: PaperRuns = field(default_factory=lambda: PaperRuns({}))

    @property
    def names(self) -> HeadNames:
        """The names of the run's heads and layers."""
        return names_of(self.tree)

    def results(self, analysis: str) -> xr.Dataset:
        """The results of an analysis; raises Unmeasured where the run is without it."""
        if analysis not in self:
            needs = f"needs {analysis}, which cannot be had of this model or these data"
            raise Unmeasured(needs, f"no {analysis} in its run")
        return self[analysis]

    def draws(self, analysis: str, variable: str, **choice: Any) -> Float64:
        """[replicate + 1, …] the draws of a variable; see `draws_of`."""
        return draws_of(self.results(analysis), variable, **choice)

    def stored(self, analysis: str, variable: str, **choice: Any) -> tuple[float, float, float]:
        """A number with the interval that the results hold; see `stored`."""
        return stored(self.results(analysis), variable, **choice)

    def attention(self, target: str) -> Float64:
        """[replicate + 1, layer, head] attention to a target of `surface`."""
        return self.draws("surface", "attention", target=target)

    def entropies(self, query: str) -> Float64:
        """[replicate + 1, layer, head] entropy of attention in nats; query: all or cls."""
        return self.draws("entropy", "entropy", query=query)

    @cached_property
    def sizes(self) -> dict[int, Float64]:
        """[replicate + 1] draws of how much the run's documents weigh, as its means count them.

        By their number, as some numbers have fewer groups of documents; none where all weigh the
        same (examples of a task), or the run was made before sizes were kept.
        """
        by_length: dict[int, Float64] = {}
        for part in self.tree.children.values():
            for name, sizes in part.data_vars.items():
                if str(name).endswith(SIZES):
                    most = np.asarray(sizes.max(sizes.dims[1:]), np.float64)
                    by_length.setdefault(len(most), most)
        return by_length

    def interval(self, draws: Float64, bounds: Bounds = ANY) -> Estimate:
        """The value [...] of draws [replicate + 1, ...], its interval, between bounds."""
        sizes = self.sizes.get(len(draws))
        shape = (-1, *[1] * (draws.ndim - 1))
        of_groups = None if sizes is None else sizes.reshape(shape)
        return estimate(draws, bounds=bounds, sizes=of_groups)

    def measured(
        self, draws: Float64, *, over: float | None = None, bounds: Bounds = ANY, **more: Any
    ) -> Measured:
        """The number of draws [replicate + 1], over the documents of the run.

        over  the direction of the claim holds if the number lies above this
        more  other fields of Measured
        """
        fields = {"n": self.counted, "count": documents(self.tree), **more}
        number = at(self.interval(draws, bounds))
        if over is not None:
            fields["verdict"] = above(*number, over)
        return Measured(*number, **fields)

    def jumping(
        self, draws: Float64, statistic: Callable[[Float64], Float64], **more: Any
    ) -> Measured:
        """A statistic that jumps, such as a count: its interval is over resampled corpora.

        draws      [replicate + 1, …]
        statistic  of [draw, …], [draw]
        more       other fields of Measured
        """
        low = high = math.nan
        if len(draws) > intervals.FEWEST:
            tails = TAIL, 1 - TAIL
            low, high = np.quantile(statistic(drawn_anew(draws)), tails).tolist()
        fields = {"n": self.counted, "count": documents(self.tree), **more}
        return Measured(float(statistic(draws[:1])[0]), low, high, **fields)

    def of_head(
        self,
        draws: Float64,
        head: tuple[int, int],
        *,
        rank: int = 0,
        sign: int = 1,
        over: float = 0.0,
        bounds: Bounds = ANY,
    ) -> Measured:
        """The number of the paper's head (from 0), of draws [replicate + 1, layer, head].

        In another model that of the `rank`-th, the largest or with sign −1 the least first; as it
        was chosen by it, its interval is longer there, to hold for all heads at once.

        over  the direction holds if the number, times the sign, lies above
        """
        place = paper_head(self, sign * draws[0], head, rank=rank)
        number = self.measured(
            draws[(slice(None), *place)], bounds=bounds, detail=self.names.head(*place), head=place
        )
        far = 1.0 if self.beside.own else stretch(draws[0].size)
        ends = [number.value + far * (end - number.value) for end in number.ends]
        low, high = sorted(sign * end for end in ends)
        return replace(number, verdict=above(sign * number.value, low, high, over))

    def peak(
        self, curve: Float64, first: float, last: float, text: Callable[[float], str]
    ) -> Measured:
        """The layer where a curve [replicate + 1, layer] peaks, and whether it is in this part."""
        at, layers = int(np.nanargmax(curve[0])), curve.shape[1]
        wanted = [one for one in range(layers) if first <= one / max(layers - 1, 1) <= last]
        parts = self.interval(curve)
        detail = f"most in layer {at + 1} of {layers}, {text(float(curve[0, at]))}"
        if others := sorted(maybe_largest(parts) - {at}):
            detail += f"; it may be layer {' or '.join(str(one + 1) for one in others)}, too"
        verdict = largest_among(parts, wanted)
        return Measured(at + 1, n=self.counted, verdict=verdict, detail=detail)

    def above(self, draws: Float64, bound: float = 0.0) -> Verdict:
        """Whether the number of draws [replicate + 1] lies above a bound."""
        return above(*at(self.interval(draws)), bound)

    def below(self, draws: Float64, bound: float = 0.0) -> Verdict:
        """Whether it lies below."""
        return below(*at(self.interval(draws)), bound)

    @property
    def counted(self) -> str:
        """`60 documents`; of a task's data, examples."""
        many, count = counted(self.tree), documents(self.tree)
        return f"{count:,} {many.removesuffix('s') if count == 1 else many}"


@dataclass(frozen=True)
class Measure:
    """How a claim's number is read.

    runs   those it cannot do without
    read   raises Unmeasured
    about  NETWORK: of a fine-tuned one asked only if it beats chance; BEFORE: one before that;
           RULE: a rule, or the data alone, which no network without training can have too
    """

    runs: tuple[str, ...]
    read: Callable[[PaperRuns], Measured]
    about: str = NETWORK


Choice = ParamSpec("Choice")


def reads(
    *names: str, about: str = NETWORK
) -> Callable[[Callable[Concatenate[PaperRun, Choice], Measured]], Callable[Choice, Measure]]:
    """Turns read(run, choice…) into a function of the choice, which gives a claim's measure.

    names  of the runs that it cannot do without; `read` gets the first. One that ends in ":" is of
           a task, the first of the choice
    about  see Measure
    """

    def decorate(
        read: Callable[Concatenate[PaperRun, Choice], Measured],
    ) -> Callable[Choice, Measure]:
        @wraps(read)
        def measure(*args: Choice.args, **named: Choice.kwargs) -> Measure:
            runs = tuple(f"{name}{args[0]}" if name.endswith(":") else name for name in names)

            def measured(all_runs: PaperRuns) -> Measured:
                run = all_runs.run(runs[0])
                return read(run, *args, **named)

            return Measure(runs, measured, about)

        return measure

    return decorate


def example_count(name: str) -> Measure:
    """How many inputs a run has read."""

    def read(runs: PaperRuns) -> Measured:
        run = runs.run(name)
        return Measured(float(run.manifest["counts"]["examples"]), n=run.counted, exact=True)

    return Measure((name,), read, RULE)


# --- draws and intervals --------------------------------------------------------------------


def draws_of(results: xr.Dataset, variable: str, **choice: Any) -> Float64:
    """[replicate + 1, …] the draws of a variable; [1, …] without stored draws.

    choice  one coordinate value per dimension
    raises  Unmeasured where the results are without the variable
    """
    _check_variable(results, variable)
    kept = variable + DRAWS in results
    draws = pick(results[variable + DRAWS if kept else variable], **choice)
    return np.asarray(draws.values if kept else draws.values[None], np.float64)


def stored(results: xr.Dataset, variable: str, **choice: Any) -> tuple[float, float, float]:
    """A number with the interval that the results hold; NaN where there is none."""
    _check_variable(results, variable)
    return at(results_estimate(results, variable, **choice))


def _check_variable(results: xr.Dataset, variable: str) -> None:
    if variable not in results:
        needs = f"needs {variable}, which these results do not have"
        raise Unmeasured(needs, f"no {variable.replace('_', ' ')} in its run")


def less(one: Ends, other: Ends) -> Ends:
    """One (value, low, high) less another, as if both erred in the worst way."""
    return one[0] - other[0], one[1] - other[2], one[2] - other[1]


# --- layers and heads -----------------------------------------------------------------------


def layer_at(number: int, layers: int) -> int:
    """The 0-based layer at the depth of layer `number` (from 1) of PAPER_DEPTH."""
    return round((number - 1) * (layers - 1) / (PAPER_DEPTH - 1))


def paper_head(
    run: PaperRun, values: Float64, head: tuple[int, int], *, rank: int = 0
) -> tuple[int, int]:
    """The paper's head (from 0) in the paper's model; in another, the one with the largest value,
    or a later one in that order."""
    if run.beside.own and head[0] < values.shape[0] and head[1] < values.shape[1]:
        return head
    heads = largest_first(values)
    if len(heads) <= rank:
        raise Unmeasured("the number does not exist for any head, or for so many")
    return heads[rank]


def percent_text(share: float, digits: int = 1) -> str:
    """A share as text: `12.3 %`."""
    return f"{fixed(100 * share, digits)} %"
