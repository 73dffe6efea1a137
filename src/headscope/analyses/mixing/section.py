"""What a report says of the analysis `mixing`."""

from __future__ import annotations

from headscope.page.sections import SectionPlan

SECTIONS = (
    SectionPlan(
        id="mixing",
        title="How much tokens are mixed",
        text=(
            "Attention weights alone make it look as if nearly everything came from other tokens. "
            "Counting the residual connection and layer normalisation shows how much of each token "
            "stays itself."
        ),
        pictures=("mixing",),
    ),
)
