"""How a model is trained on a task."""

from __future__ import annotations

from collections.abc import Callable

from headscope.core.options import Options, option
from headscope.errors import InputError

Progress = Callable[[int, int], None]  # steps done, all steps


class TrainingSchedule(Options, heading="The training"):
    """Length and learning rates of a training; defaults are the paper's, else BERT's."""

    epochs: int = option("Passes over the examples.", 3, least=1)
    batch: int = option("Examples of a batch.", 32, least=1)
    rate: float = option("Learning rate.", 2e-5, python="The largest: it rises and falls.")
    layer_decay: float = option(
        "Each layer learns by this factor more slowly than the one above.", 1.0
    )
    freeze: int = option(
        "Layers, from the first, that do not learn; nor do the embeddings, then.", 0, least=0
    )
    warm_up: float = option("Share of the steps in which the rate rises.", 0.1)
    seed: int = option("Seed of all random draws.", 0, least=0)

    def __post_init__(self) -> None:
        """Raise InputError for numbers that cannot be."""
        super().__post_init__()
        rules = {
            "rate": (self.rate > 0, "more than 0"),
            "layer_decay": (0 < self.layer_decay <= 1, "more than 0 and at most 1"),
            "warm_up": (0 <= self.warm_up < 1, "0 or more and less than 1"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise InputError(f"{name} is {getattr(self, name)}; wanted {rule}")
