"""What a report says of the analysis `surface`."""

from __future__ import annotations

from headscope.page.sections import SectionPlan

SECTIONS = (
    SectionPlan(
        id="surface",
        title="Where each layer looks",
        text=(
            "The plainest thing that a head can do is to look at a neighbour or to rest on a "
            "special token. A few heads with high marks do one thing only; a high line means that "
            "the whole layer does it."
        ),
        pictures=("surface_by_layer",),
    ),
)
