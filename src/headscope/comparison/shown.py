"""What do both models make of the examples that changed most?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import xarray as xr

from headscope.analyses.examples import Examples
from headscope.batch import Batch
from headscope.comparison.pairs import AFTER, BEFORE, Work, reading
from headscope.corpus import Corpus, Example
from headscope.derived.reading import printable
from headscope.instrument import Instrument
from headscope.model import Model, forward
from headscope.plan import Plan, Reader
from headscope.spec import Settings

SHOWN = 4
LONGEST = 400  # characters of an example where it is named


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
    models: dict[str, Model], work: Work, changed: Sequence[Changed]
) -> xr.Dataset | None:
    """Maps of the first of them in the second model, and `versus_attention`, those of the first."""
    few = tuple(one.example for one in changed[:SHOWN])
    if not few:
        return None
    found = {side: _maps(model, work, few) for side, model in models.items()}
    maps = found[BEFORE]["token_attention"]
    title = models[BEFORE].name.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    versus = maps.assign_attrs(versus=f"attention, {title}")
    return found[AFTER].assign(versus_attention=versus).assign_attrs(chosen="changed")


def _maps(model: Model, work: Work, few: tuple[Example, ...]) -> xr.Dataset:
    tokens = tuple(model.tokens(example.input_ids) for example in few)
    analysis = Examples(replace(work.scope, showcase=few, showcase_tokens=tokens))
    for example in few:
        batch = Batch.of([example], model.vocabulary, replicates=0, device=model.device)
        look = partial(analysis.observe, batch=batch)
        instrument = Instrument(model.network, observers=[look], stacks=[work.stack])
        with reading([model], work), instrument:
            forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
    return analysis.result()


def listed(changed: Sequence[Changed], model: Model) -> xr.Dataset:
    """example_change[rank], with the id and the text of each as coordinates."""
    texts = [printable(_read(one.example, model))[:LONGEST] for one in changed]
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


def _read(example: Example, model: Model) -> str:
    """What was read, without special tokens; texts that these stand between are parted by /."""
    parts: list[list[str]] = [[]]
    for token, special in zip(model.tokens(example.input_ids), example.special, strict=True):
        if not special:
            parts[-1].append(token)
        elif parts[-1]:
            parts.append([])
    # WordPiece marks the continuation of a word with ##.
    return " / ".join(" ".join(part).replace(" ##", "") for part in parts if part)
