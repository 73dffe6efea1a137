"""What is asked of `headscope importance`, and how is it run?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headscope.errors import InputError
from headscope.experiments.ablation.sweep import BATCH_TOKENS
from headscope.experiments.importance.result import METHODS

STEPS = 5  # of AttAttr's integral: errs by 1e-4 of a probability on fine-tuned models
QUICK = tuple(name for name in METHODS if name != "attattr")


@dataclass(frozen=True)
class Settings:
    """What is computed.

    methods       of result.METHODS; None: all of them for a task, and without AttAttr for text,
                  where a step costs a pass through the whole vocabulary
    steps         of AttAttr's integral
    max_length    tokens of an input at most; None: 128 for a task, and as `atlas` for text
    long          what to do with longer text, as `atlas`; of a task they are cut, and counted
    segment_ids   of text, as `atlas`
    limit         documents of a corpus at most
    batch_tokens  tokens of one forward pass, copies of an example included
    replicates    of the bootstrap
    """

    methods: tuple[str, ...] | None = None
    steps: int = STEPS
    max_length: int | None = None
    long: str = "window"
    segment_ids: str = "auto"
    limit: int | None = None
    batch_tokens: int = BATCH_TOKENS
    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises InputError for what cannot be."""
        unknown = [name for name in self.methods or () if name not in METHODS]
        if unknown or self.methods == ():
            raise InputError(
                f"methods are {', '.join(self.methods or ()) or 'none'}; wanted some of "
                f"{', '.join(METHODS)}"
            )
        if self.steps < 1 or self.batch_tokens < 1 or self.replicates < 0:
            raise InputError(
                f"found steps={self.steps}, batch_tokens={self.batch_tokens}, replicates="
                f"{self.replicates}; wanted at least 1, 1 and 0"
            )


@dataclass(frozen=True)
class Running:
    """How it is run; none of it decides what is computed.

    linears    "auto", "onednn" or "stock"
    overwrite  replace a run of another spec in the folder
    command    the command line
    progress   called as progress(examples_done, examples)
    """

    linears: str = "auto"
    overwrite: bool = False
    command: Sequence[str] = ()
    progress: Callable[[int, int], None] | None = None
