"""Settings of experiments that remove heads."""

from __future__ import annotations

from typing import Literal

from headscope.core.head_names import Head, head_named
from headscope.core.options import Options, comma_separated, option, several
from headscope.errors import InputError
from headscope.model.request import BATCH_TOKENS
from headscope.run.execution import Intervals
from headscope.tasks.task_request import ExampleLength

ORDERS = ("greedy", "alone", "given", "random")


def group_named(text: str) -> tuple[Head, ...]:
    """`4-1+2-12` as ((3, 0), (1, 11)); InputError for what is no head."""
    return tuple(map(head_named, text.split("+")))


REPLACEMENTS = ("uniform", "zero", "mean")


class Replacement(Options, heading="What is switched off"):
    """What stands in for a head."""

    replacement: Literal["uniform", "zero", "mean"] = option(
        "What a head gives instead: even attention, nothing, or its mean output.", "uniform"
    )


class AblationSettings(Replacement, Intervals, ExampleLength, heading="What is switched off"):
    """Settings of an ablation."""

    groups: tuple[tuple[Head | str, ...], ...] = several(
        "A group of heads to be off together, say 4-1+2-12 or, from 0, 3.0+1.11; repeatable.",
        names="--together",
        reads=group_named,
        metavar="HEADS",
        python="Each is ((layer, head), …) from 0, by the model's own numbers of layers, or "
        'names: ("L4H1", "1.11").',
    )
    pairs: int = option(
        "Also every two of the N heads that matter most alone.",
        0,
        least=0,
        metavar="N",
        shown=False,
    )
    batch_tokens: int = option(
        "Tokens of a forward pass at most, all variants included.",
        BATCH_TOKENS,
        least=1,
        heading="How to run",
    )

    def __post_init__(self) -> None:
        """Raise InputError for one pair, or a group without heads."""
        super().__post_init__()
        if self.pairs == 1:
            raise InputError("found pairs=1; wanted 0 or at least 2 pairs")
        if any(not group for group in self.groups):
            raise InputError("found a group without heads; wanted one head or more in each")


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
    draws: int = option(
        "Number of random orders.", 3, least=1, heading="How sure", before="replicates"
    )
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
