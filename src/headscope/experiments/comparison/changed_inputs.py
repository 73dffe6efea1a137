"""Keeps the inputs whose maps change most between two models, and reads them back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.accumulators import Float64
from headscope.core.results import printable
from headscope.core.top_records import TopRecords
from headscope.corpus import Corpus, Example
from headscope.experiments.input_maps import input_text
from headscope.model.model import Model
from headscope.run.analysis import AnalysisPart
from headscope.run.plan import Plan, Reader
from headscope.run.settings import Settings

KEPT = 20
LEAST_TOKENS = 8  # ours: a shorter input has little to look at
ROUND = 1e-6  # what a batch of another shape changes decides nothing
RECORD = np.dtype([("score", "f8"), ("key", "u8"), ("shard", "i4"), ("row", "i4")])


class MostChanged(AnalysisPart):
    """The examples of largest change, and where in the corpus they are."""

    def __init__(self) -> None:
        self.best = TopRecords.zeros(KEPT, record=RECORD)

    def add(
        self, examples: Sequence[Example], change: Float64, *, shard: int, rows: Sequence[int]
    ) -> None:
        """Take the examples of one batch into account.

        change  [example] from 0; those without any are not kept
        rows    [example] their places in the shard
        """
        for example, score, row in zip(examples, change, rows, strict=True):
            if len(example) < LEAST_TOKENS:
                continue
            name = f"{example.document}\0{example.id}".encode("utf-8", "surrogatepass")
            key = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")
            rounded = np.round(score / ROUND) * ROUND
            if len(self.best.wanted(np.array(rounded), key)):
                self.best.put((), np.array((rounded, key, shard, row), RECORD))

    @property
    def records(self) -> npt.NDArray[np.void]:
        """[rank] RECORDs of those there are, the largest change first."""
        found: npt.NDArray[np.void] = self.best.records
        return found[found["score"] > 0]


@dataclass(frozen=True)
class ChangedInput:
    """One of the examples whose maps changed most; change: mean of 1 - cosine over all heads."""

    example: Example
    change: float


def find_changed(
    records: np.ndarray, model: Model, corpus: Corpus, settings: Settings, plan: Plan
) -> list[ChangedInput]:
    """The inputs that `MostChanged` has kept, read again from the corpus."""
    reader, places = Reader(model, corpus, settings), dict[tuple[int, int], Example]()
    for number in sorted({int(record["shard"]) for record in records}):
        examples = reader.examples(plan.shards[number])
        for record in records[records["shard"] == number]:
            places[number, int(record["row"])] = examples[int(record["row"])]
    return [
        ChangedInput(places[int(r["shard"]), int(r["row"])], float(r["score"])) for r in records
    ]


def listed(changed: Sequence[ChangedInput], model: Model) -> xr.Dataset:
    """example_change[rank], with the id and the text of each as coordinates."""
    texts = [input_text(one.example, model) for one in changed]
    names = {
        "example_id": [printable(one.example.id) for one in changed],
        "example_document": [printable(one.example.document) for one in changed],
        "example_text": texts,
        "example_tokens": [len(one.example) for one in changed],
    }
    words = "1 - cosine of the maps, mean over all heads"
    attrs = {"long_name": words, "units": "1", "source": "ours", "tidy": 0}
    values = xr.DataArray([one.change for one in changed], dims=["rank"], attrs=attrs)
    dataset = xr.Dataset({"example_change": values}, coords={"rank": np.arange(len(changed))})
    return dataset.assign_coords({name: ("rank", few) for name, few in names.items()})
