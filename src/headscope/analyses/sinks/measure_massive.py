"""Massive activations: few numbers of the residual stream, thousands of times as large as the rest.

A number x of the stream that a layer's attention reads is massive where |x| > 100 and |x| > 1,000
times the median of |x| over the input's tokens and dimensions (Sun et al. 2024, §2). They sit in
few dimensions, at the first token and at separators, and go with sinks.
"""

import hashlib

import numpy as np
import numpy.typing as npt
import torch

from headscope.core.accumulators import Float64, Ints, TopRecords, ratio
from headscope.core.intervals import POSITIVE, estimate, estimate_share
from headscope.core.results import Variable
from headscope.core.terms import SUN
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import AnalysisPart, Scope

LEAST, TIMES = 100.0, 1000.0  # Sun et al.
KEPT = 3  # dimensions of a layer
RECORD = np.dtype([
    ("score", np.float64), ("key", np.uint64), ("times", np.float64),
    ("dimension", np.int64), ("position", np.int64), ("token", np.int64),
])  # fmt: skip


class Massive(AnalysisPart):
    """The largest numbers of the stream by layer, their median, and where massive ones are."""

    def __init__(self, scope: Scope) -> None:
        self.sizes = scope.sums(scope.layers, 3)  # the largest, the median, whether it is massive
        self.inputs = scope.sums(scope.layers)
        self.best = TopRecords.zeros(scope.layers, KEPT, 1, record=RECORD)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Look at every example's stream."""
        if layer.residual is None:
            return
        found = np.zeros((len(batch.lengths), 3))
        for row, n in enumerate(batch.lengths.tolist()):
            sizes = layer.residual[row, :n].abs().float()  # [token, dimension]
            largest, median = float(sizes.amax()), float(sizes.flatten().median())
            massive = largest > max(LEAST, TIMES * median)
            found[row] = largest, median, massive
            if massive:
                self._keep(layer.index, sizes, median, batch, row)
        self.sizes.add(found, batch.groups, at=(layer.index,))
        self.inputs.add(np.ones(len(found)), batch.groups, at=(layer.index,))

    def _keep(self, layer: int, sizes: torch.Tensor, median: float, batch: Batch, row: int) -> None:
        """The massive ones of an example's largest dimensions, where no example has larger ones."""
        example, record = batch.examples[row], np.zeros((), RECORD)
        name = f"{example.document}\0{example.id}".encode("utf-8", "surrogatepass")
        record["key"] = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")
        by_dimension, place = sizes.max(0)
        top = by_dimension.topk(min(KEPT, len(by_dimension)))
        for rank, (score, dimension) in enumerate(zip(*map(torch.Tensor.tolist, top), strict=True)):
            here = TopRecords(self.best.rows[layer, rank], RECORD)
            larger = len(here.wanted(np.array(score), int(record["key"])))
            if larger and score > max(LEAST, TIMES * median):
                position = int(place[dimension])
                record["score"], record["times"] = score, score / median if median else np.nan
                record["dimension"], record["position"] = dimension, position
                record["token"] = int(example.input_ids[position])
                here.put((), record)

    def variables(self) -> dict[str, Variable]:
        """largest, median, massive_share [layer]; massive, massive_times [layer, rank]."""
        sizes = self.inputs.sums  # [replicate + 1, layer]
        draws = ratio(self.sizes.sums, sizes[..., None])
        share = estimate_share(draws[..., 2], sizes)
        words = "|x| of the residual stream, mean over inputs"
        variables = {
            name: Variable(
                estimate(draws[..., at], bounds=POSITIVE, sizes=sizes), ("layer",),
                f"{name} {words}", "1", SUN,
            )
            for at, name in enumerate(("largest", "median"))
        }  # fmt: skip
        words = f"share of inputs in which the stream has |x| > {LEAST:g} and > {TIMES:,g} times"
        variables["massive_share"] = Variable(
            share, ("layer",), f"{words} the median", "probability", SUN
        )
        best, dims = self._best, ("layer", "rank")
        words = "largest massive |x| of a dimension, of the three largest dimensions of an input"
        variables["massive"] = Variable(_there(best, "score"), dims, words, "1", SUN)
        words = "the same over the median |x| of the input"
        variables["massive_times"] = Variable(_there(best, "times"), dims, words, "1", SUN)
        return variables

    @property
    def _best(self) -> npt.NDArray[np.void]:
        return np.asarray(self.best.records[..., 0])  # [layer, rank]

    def coords(self) -> dict[str, tuple[tuple[str, str], Ints]]:
        """Where the massive ones are; -1: nowhere."""
        best = self._best
        return {
            f"massive_{name}": (
                ("layer", "rank"), np.where(best["score"] > 0, best[field], -1)
            )
            for name, field in (
                ("dimension", "dimension"), ("position", "position"), ("token_id", "token"),
            )
        }  # fmt: skip


def _there(best: npt.NDArray[np.void], field: str) -> Float64:
    return np.where(best["score"] > 0, best[field], np.nan)
