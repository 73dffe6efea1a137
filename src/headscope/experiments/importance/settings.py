"""Methods and settings of importance."""

from __future__ import annotations

from headscope.core.options import comma_separated, option
from headscope.errors import InputError
from headscope.model.request import BATCH_TOKENS
from headscope.run.execution import Intervals, Lengths

CLARK = "Clark et al. 2019, Figure 3"
OURS = "headscope"
MICHEL = "Michel et al. 2019, §4.1"
HAO = "Hao et al. 2021, §4"
SOURCES = {
    "gradient": CLARK,
    "michel": MICHEL,
    "michel_normalised": MICHEL,
    "slope_zero": OURS,
    "slope_uniform": OURS,
    "attattr": HAO,
}
METHODS = tuple(SOURCES)
QUICK = tuple(name for name in METHODS if name != "attattr")
STEPS = 5  # of AttAttr's integral: errs by 1e-4 of a probability on fine-tuned models


class ImportanceSettings(Intervals, Lengths, heading="What to compute"):
    """Settings of a run of importance."""

    methods: tuple[str, ...] | None = option(
        "Some of gradient, michel, michel_normalised, slope_zero, slope_uniform, attattr; by "
        "default all for a task, all but the last for text.",
        reads=comma_separated,
        metavar="A,B,…",
    )
    steps: int = option("Steps of attattr's integral.", STEPS, least=1)
    limit: int | None = option(
        "Examples of a task, drawn by --seed, or the first documents.", least=1
    )
    batch_tokens: int = option(
        "Tokens of a forward pass at most, copies of an input included.",
        BATCH_TOKENS,
        least=1,
        heading="How to run",
    )
    seed: int = option("Seed of masks and draws.", 0, least=0)

    def __post_init__(self) -> None:
        """Raise InputError for methods that there are not, or numbers that cannot be."""
        super().__post_init__()
        unknown = [name for name in self.methods or () if name not in METHODS]
        if unknown or self.methods == ():
            names = ", ".join(self.methods or ()) or "none"
            raise InputError(f"methods are {names}; wanted some of {', '.join(METHODS)}")
