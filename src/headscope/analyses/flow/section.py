"""What a report says of the analysis `flow`."""

from __future__ import annotations

from headscope.page.sections import SectionPlan

SECTIONS = (
    SectionPlan(
        id="flow",
        title="Where representations come from",
        text=(
            "Layer by layer tokens take from each other, so that a vector high up need not say "
            "much about its own word. Following every path back to the input tells what is left of "
            "it; attention alone makes the resting places look like sources, the norms of what is "
            "passed on do not."
        ),
        pictures=("flow",),
    ),
)
