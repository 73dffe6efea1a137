"""What a report says of the analysis `patterns`."""

from __future__ import annotations

from headscope.page.sections import SectionPlan

SECTIONS = (
    SectionPlan(
        id="patterns",
        title="Classes of maps",
        text=(
            "A map with a few columns says where a head rests, one along the diagonal that it "
            "looks nearby, blocks that it keeps to a segment. What is left, heterogeneous maps, is "
            "the most that can depend on what the words are (Kovaleva et al. 2019)."
        ),
        pictures=("patterns",),
    ),
)
