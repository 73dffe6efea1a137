"""Settings of a replay: which heads are replaced by what, on how many inputs."""

from __future__ import annotations

from typing import Literal

from headscope.core.head_names import Head, head_named
from headscope.core.options import comma_separated, option
from headscope.errors import InputError, unknown
from headscope.model.request import BATCH_TOKENS
from headscope.run.execution import Intervals, Lengths

RULES, YOURS, REST, MEAN_MAP, EVEN, ANOTHER = REPLACEMENTS = (
    "rules",
    "your_rules",
    "rest",
    "mean_map",
    "even",
    "another_head",
)
OUTPUT = "output"  # weights of rules that are fitted to it
ALONE = "alone"  # the order by what each head costs by itself
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
USUAL = tuple(name for name in REPLACEMENTS if name != YOURS)


def shares_named(text: str) -> tuple[float, ...]:
    """`10,25` as (0.1, 0.25); InputError for what is no number."""
    try:
        return tuple(float(part) / 100 for part in text.split(","))
    except ValueError:
        raise InputError(f"--shares is {text!r}; wanted percentages, say 10,25,50") from None


class ReplaySettings(Intervals, Lengths, heading="What is replayed"):
    """Settings of a replay."""

    heads: tuple[Head | str, ...] = option(
        "Replace these heads alone, as one set, say L3H9,L5H2; by default shares of all heads, or "
        "the heads that --rules names.",
        (),
        reads=comma_separated,
        metavar="HEADS",
        python="Each (layer, head) from 0, by the model's own numbers of layers, or a name.",
    )
    shares: tuple[float, ...] | None = option(
        "Percentages of the heads that are replaced together; by default 10,25,50,75,100.",
        reads=shares_named,
        metavar="A,B,…",
        python="In Python shares, 0.1 for 10 %.",
    )
    replacements: tuple[str, ...] = option(
        f"What stands in for a head, some of {', '.join(USUAL)}.",
        USUAL,
        reads=comma_separated,
        metavar="A,B,…",
        shown=False,
    )
    order: Literal["output", "alone", "gathering", "attention"] = option(
        "Which heads come first: those whose rules leave what they add to the stream least wrong, "
        "move the output least where they stand in for one head alone (a pass for each head), "
        "explain most of what they gather, or of their attention.",
        "output",
    )
    weights: Literal["attention", "output"] = option(
        "Weights of rules: those that predict attention best, or those that are fitted to the "
        "output of the model, all heads of a set replaced (passes with gradients).",
        "attention",
    )
    score: Literal["loss", "answers", "vectors"] | None = option(
        "What of the output is compared; by default the loss of a language model, the answers of a "
        "classifier, else the vectors."
    )
    inputs: int = option("Inputs at most that the replacements are tried on.", 48, least=6)
    choosing: int = option(
        "Inputs at most that choose the rules, and order the heads.", 96, least=6
    )
    draws: int = option("Random orders of the heads, beside that by rules.", 3, least=0)
    limit: int | None = option("Read only the first N documents.", least=1)
    batch_tokens: int = option(
        "Tokens of a forward pass at most.", BATCH_TOKENS, least=1, heading="How to run"
    )

    def __post_init__(self) -> None:
        """Raise InputError for shares, replacements or heads that cannot be."""
        super().__post_init__()
        shares = SHARES if self.shares is None else tuple(sorted(set(self.shares)))
        if not shares or not all(0 < share <= 1 for share in shares):
            raise InputError(
                f"shares are {', '.join(f'{100 * share:g} %' for share in shares) or 'none'}; "
                "wanted some above 0 %, up to 100 %"
            )
        for name in self.replacements:
            if name not in USUAL:
                raise unknown("replacement", name, USUAL)
        if not self.replacements:
            raise InputError(f"found no replacement; wanted some of {', '.join(USUAL)}")
        object.__setattr__(self, "shares", shares)
        object.__setattr__(self, "heads", tuple(map(head_named, self.heads)))
