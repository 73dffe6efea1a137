"""Settings of experiments that remove heads."""

from __future__ import annotations

from headscope.core.options import comma_separated, option
from headscope.corpus.packing import BATCH_TOKENS
from headscope.errors import InputError
from headscope.run.execution import Intervals
from headscope.tasks.task_request import ExampleLength

ORDERS = ("greedy", "alone", "given", "random")


class PruningSettings(Intervals, ExampleLength, heading="Which heads go"):
    """Settings of a pruning."""

    orders: tuple[str, ...] = option(
        "Orders of removal, comma-separated.",
        ("greedy", "alone", "random"),
        reads=comma_separated,
        python="Some of greedy, alone, given and random.",
    )
    allowance: float = option("Points of the score that may be lost.", 0.5)
    remove: int | None = option("Remove N heads, whatever it costs.", least=0, metavar="N")
    step: int | None = option("Heads from one point of a curve to the next.", least=1)
    draws: int = option("Number of random orders.", 3, least=1, heading="How sure")
    batch_tokens: int = option(
        "Tokens of a forward pass at most.", BATCH_TOKENS, least=1, heading="How to run"
    )

    def __post_init__(self) -> None:
        """Raise InputError for orders or numbers that cannot be."""
        super().__post_init__()
        unknown = [name for name in self.orders if name not in ORDERS]
        if unknown or not set(self.orders) - {"random"}:
            raise InputError(
                f"orders are {', '.join(self.orders) or 'none'}; wanted some of "
                f"{', '.join(ORDERS)}, and not random alone"
            )
        if self.allowance < 0:
            raise InputError(f"found allowance={self.allowance}; wanted at least 0")
