"""Settings of a trial of labels: on how many inputs, of which heads."""

from __future__ import annotations

from typing import Literal

from headscope.core.head_names import Head, head_named
from headscope.core.options import comma_separated, option
from headscope.model.request import BATCH_TOKENS
from headscope.run.execution import Intervals, Lengths

BY_LOSS = "loss"
LEAST = 8  # ours: inputs in which a rule applies; of fewer nothing is tried


class TrialSettings(Intervals, Lengths, heading="What is tried"):
    """Settings of a trial."""

    heads: tuple[Head | str, ...] = option(
        "Try the labels of these heads alone, say L3H9,L5H2.",
        (),
        reads=comma_separated,
        metavar="HEADS",
        python="Each (layer, head) from 0, by the model's own numbers of layers, or a name.",
    )
    inputs: int = option("Inputs at most that each label is tried on.", 32, least=LEAST)
    score: Literal["loss", "vectors"] | None = option(
        "What says that a label matters: the loss of a language model, or its output vectors; by "
        "default the loss of masked tokens of a masked language model, else the vectors."
    )
    limit: int | None = option("Read only the first N documents.", least=1)
    batch_tokens: int = option(
        "Tokens of a forward pass at most.", BATCH_TOKENS, least=1, heading="How to run"
    )

    def __post_init__(self) -> None:
        """Raise InputError for a head that is none."""
        super().__post_init__()
        object.__setattr__(self, "heads", tuple(map(head_named, self.heads)))
