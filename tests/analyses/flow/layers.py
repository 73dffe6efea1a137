"""What are the layers of a tiny model of any family, with the batch that they saw?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from headscope.corpus.document import Example
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.run.contract_bench import VOCABULARY
from model.families.tiny import FAMILIES, inputs, tiny


def families_layers(name: str) -> tuple[list[LayerView], Batch]:
    """The layers of a family on its inputs as a batch; of an encoder-decoder, the encoder's."""
    given, mask = inputs(name)
    examples = [
        Example(str(row), str(row), ids[:n].numpy(), np.zeros(n, np.int64), np.zeros(n, bool))
        for row, (ids, n) in enumerate(zip(given["input_ids"], mask.sum(1).tolist(), strict=True))
    ]
    batch = Batch.of(examples, VOCABULARY, replicates=0)
    width = given["input_ids"].shape[1]
    batch = replace(
        batch,
        input_ids=batch.input_ids[:, :width],
        segment_ids=batch.segment_ids[:, :width],
        mask=batch.mask[:, :width],
    )
    assert torch.equal(batch.mask, mask)
    stacks = FAMILIES[name].stacks
    views: list[LayerView] = []
    stack = "encoder" if "encoder" in stacks else "decoder"
    with torch.no_grad(), Instrument(tiny(name), observers=[views.append], stacks=[stack]):
        tiny(name)(**given)
    return views, batch
