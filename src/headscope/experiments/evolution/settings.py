"""Settings of an evolution: which numbers are followed, and the inputs made for decoders."""

from __future__ import annotations

from headscope.core.options import Options, comma_separated, option
from headscope.experiments.circuits.settings import FEWEST

ANALYSES = ("surface", "entropy")


class MadeInputs(Options, heading="What to compute"):
    """Inputs of random tokens that come twice, for decoders."""

    sequences: int = option(
        "Inputs of random tokens that come twice, for decoders.", 20, least=FEWEST
    )
    length: int | None = option(
        "Tokens that come twice; by default 50, or as many as the model takes.", least=4
    )


class Followed(MadeInputs, heading="What to compute"):
    """The same, and which numbers of heads are drawn over the steps."""

    follow: tuple[str, ...] | list[str] | None = option(
        "Comma-separated numbers per head, say circuits.score.induction or "
        "surface.attention.previous; a few by default. Labels come from all that is computed.",
        reads=comma_separated,
        python="In Python several keys.",
    )
