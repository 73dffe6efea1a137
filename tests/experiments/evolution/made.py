"""A training of seconds: what do the tests of evolutions share?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.trained_decoder import trainer
from transformers import Trainer

import headscope as hs

STEPS, EVERY, BATCH = 24, 4, 64
FEW: dict[str, Any] = {"length": 16, "sequences": 20}


def taught(
    folder: Path, *, callback: dict[str, Any] | None = None, steps: int = STEPS, **more: Any
) -> Trainer:
    """A Trainer of a decoder of two layers, with a callback where that is asked for."""
    teacher = trainer(
        folder,
        steps,
        seed=0,
        per_device_train_batch_size=BATCH,
        lr_scheduler_type="constant",
        **more,
    )
    if callback is not None:
        how: dict[str, Any] = {**FEW, "every": EVERY, "report": False, "control": "none"}
        teacher.add_callback(hs.HeadscopeCallback(teacher, **(how | callback)))
    return teacher
