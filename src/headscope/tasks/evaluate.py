"""What does a model answer to the examples of a task?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headscope.corpus.batches import batches
from headscope.corpus.document import Example
from headscope.model.batch import Batch
from headscope.model.model import evaluating, forward
from headscope.tasks.checkpoint import TaskModel
from headscope.tasks.encode import Encoded

BATCH_TOKENS = 2048  # padded tokens of a batch


def outputs(
    model: TaskModel, encoded: Encoded, *, batch_tokens: int = BATCH_TOKENS
) -> npt.NDArray[np.float64]:
    """[example, class] logits, or [example] predictions of a regression, in the order of the rows.

    Batches of similar length, nothing drops out, no gradients; how examples are batched moves
    float32 logits by less than 1e-5.
    """
    found = np.empty((len(encoded.examples), model.task.outputs))
    with evaluating(model.model.network):
        for places in batches(encoded.examples, budget=batch_tokens):
            found[places] = logits(model, [encoded.examples[at] for at in places])
    return found[:, 0] if model.task.is_regression else found  # [example] or [example, class]


def logits(model: TaskModel, examples: Sequence[Example]) -> npt.NDArray[np.float64]:
    """[example, output] of one batch; the network is run as it is."""
    batch = Batch.of(examples, model.model.vocabulary, replicates=0, device=model.model.device)
    found: Any = forward(model.model.network, batch.input_ids, batch.mask, batch.segment_ids)
    said: torch.Tensor = found.logits
    return said.double().cpu().numpy()
