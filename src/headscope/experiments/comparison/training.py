"""Do layers change most merely because they learn most: larger gradients, larger steps?

`headscope finetune` writes beside a checkpoint, for every layer, the mean norm of its gradients and
how far its weights have moved. Here both stand beside the change of attention.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.accumulators import Float64, estimate
from headscope.core.labelled import Variable
from headscope.errors import ModelError
from headscope.experiments.comparison.ranks import chance_of, rank_correlation

RECORD = "finetuned.json"
_MEASURES = {
    "gradient_norm": "norm of a layer's gradients, mean over the steps of the training",
    "relative_change": "how far a layer's weights moved, of their own norm",
    "learning_rate": "largest learning rate of a layer",
}
_SOURCE = "ours"


@dataclass(frozen=True)
class Training:
    """What is known of how a checkpoint was trained.

    gradient_norm, relative_change, learning_rate  [layer] NaN where it is not known
    """

    gradient_norm: Float64
    relative_change: Float64
    learning_rate: Float64


def read_training(checkpoint: str | Path, *, layers: int) -> Training | None:
    """What `headscope finetune` wrote beside a checkpoint; None where there is no record.

    raises  ModelError if the record is damaged, or of a network with other layers
    """
    file = Path(checkpoint) / RECORD
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text("utf-8"))
        rows = [row for row in record["layers"] if row["layer"] is not None]
        numbers = {int(row["layer"]): row for row in rows}
        found = [_column(numbers, name) for name in ("gradient_norm", "relative_change", "rate")]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(
            f"{file} is no record of a training ({type(error).__name__}: {str(error)[:80]}); "
            "make the checkpoint again with headscope finetune, or delete the file"
        ) from error
    if sorted(numbers) == [0] and layers > 1:  # one layer, used again and again (ALBERT)
        return None
    if sorted(numbers) != list(range(layers)):
        raise ModelError(
            f"{file} tells of {len(numbers)} layers, and the checkpoint has {layers}; wanted the "
            "record of this checkpoint: delete the file if it is of another"
        )
    return Training(*found)


def beside_training(change: Float64, training: Training, *, documents: int) -> dict[str, Variable]:
    """The numbers of the training, and how they go with the change of attention over layers.

    change   [replicate + 1, layer] 1 - cosine, mean over heads
    returns  gradient_norm, relative_change, learning_rate [layer]; and of the first two
             NAME_correlation        Spearman's, with 1 - cosine; the interval is over documents
             NAME_p                  how often layers in random order go together as closely
             NAME_depth_correlation  with the layer's number
    """
    depth = np.arange(change.shape[1], dtype=np.float64)
    found: dict[str, Variable] = {}
    for name, words in _MEASURES.items():
        values: Float64 = getattr(training, name)
        if not np.isfinite(values).all():
            continue
        found[name] = Variable(values, ("layer",), words, "1", _SOURCE)
        if name == "learning_rate":
            continue
        together = estimate(rank_correlation(change, values), documents=documents)
        numbers: dict[str, Any] = {
            "correlation": (together, "rank correlation with 1 - cosine over layers"),
            "p": (chance_of(change[0], values), "p of that correlation, layers dealt out anew"),
            "depth_correlation": (
                float(rank_correlation(values, depth)), "rank correlation with depth"
            ),
        }  # fmt: skip
        found |= {
            f"{name}_{key}": Variable(value, (), f"{words}: {told}", "1", _SOURCE)
            for key, (value, told) in numbers.items()
        }
    return found


def _column(rows: dict[int, dict[str, Any]], name: str) -> Float64:
    """[layer] one number of each row; NaN where it is missing."""
    values = [rows[layer].get(name) for layer in sorted(rows)]
    return np.array([np.nan if value is None else float(value) for value in values])
