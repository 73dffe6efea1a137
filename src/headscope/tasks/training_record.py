"""Reads how a checkpoint was trained, and what it scored before and after.

`headscope finetune` writes that beside the weights; a run about the checkpoint keeps what a reader
of its numbers asks first.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

RECORD = "finetuned.json"  # beside the weights
SETTINGS = ("epochs", "batch", "rate", "layer_decay", "seed")


def history_of(checkpoint: str) -> dict[str, Any] | None:
    """What finetuned.json says, in short; None where there is none that can be read.

    returns  base (the model it began as), start ("new head": weights of the base; "random"), task,
             metric, learned (examples), scored (examples), settings, and before, after: value,
             ci_low, ci_high, None where undefined
    """
    try:
        record = json.loads((Path(checkpoint) / RECORD).read_text("utf-8"))
        task, data, metrics = record["task"], record["data"], record["metrics"]
        metric = str(task["metrics"][0])
        return {
            "base": str(record["model"]["name"]),
            "start": str(record["model"]["start"]),
            "task": str(task["name"]),
            "metric": metric,
            "learned": int(data["train"]["examples"]),
            "scored": int(data["dev"]["examples"]),
            "settings": {k: record["settings"][k] for k in SETTINGS if k in record["settings"]},
            **{when: _score(metrics[when], metric) for when in ("before", "after")},
        }
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None  # a reader misses a row; who needs the record itself says what is wrong with it


def _score(found: dict[str, Any], metric: str) -> dict[str, float | None]:
    named = {"value": metric, "ci_low": "ci_low", "ci_high": "ci_high"}
    return {name: _number(found.get(key)) for name, key in named.items()}


def _number(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(float(value)) else None
