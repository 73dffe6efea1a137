"""What do both models make of the examples that changed most?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.results import printable
from headscope.corpus import Corpus, Example
from headscope.experiments.comparison.paired_reading import AFTER, BEFORE, ComparisonPlan, reading
from headscope.experiments.stored_maps import maps_of, text_of
from headscope.model.model import Model
from headscope.run.plan import Plan, Reader
from headscope.run.settings import Settings

SHOWN = 4


@dataclass(frozen=True)
class Changed:
    """One of the examples whose maps changed most; change: mean of 1 - cosine over all heads."""

    example: Example
    change: float


def find_changed(
    records: np.ndarray, model: Model, corpus: Corpus, settings: Settings, plan: Plan
) -> list[Changed]:
    """The examples that `MostChanged` has kept, read again from the corpus."""
    reader, places = Reader(model, corpus, settings), dict[tuple[int, int], Example]()
    for number in sorted({int(record["shard"]) for record in records}):
        examples = reader.examples(plan.shards[number])
        for record in records[records["shard"] == number]:
            places[number, int(record["row"])] = examples[int(record["row"])]
    return [Changed(places[int(r["shard"]), int(r["row"])], float(r["score"])) for r in records]


def example_maps(
    models: dict[str, Model], work: ComparisonPlan, changed: Sequence[Changed]
) -> xr.Dataset | None:
    """Maps of the first of them in the second model, and `versus_attention`, those of the first."""
    few = tuple(one.example for one in changed[:SHOWN])
    if not few:
        return None
    found = {}
    for side, model in models.items():
        with reading([model], work):
            found[side] = maps_of(model, few, work.scope)
    maps = found[BEFORE]["token_attention"]
    title = models[BEFORE].name.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    versus = maps.assign_attrs(versus=f"attention, {title}")
    return found[AFTER].assign(versus_attention=versus).assign_attrs(chosen="changed")


def listed(changed: Sequence[Changed], model: Model) -> xr.Dataset:
    """example_change[rank], with the id and the text of each as coordinates."""
    texts = [text_of(one.example, model) for one in changed]
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
