"""What a report says of the analysis `entropy`."""

from __future__ import annotations

from headscope.page.sections import SectionPlan

SECTIONS = (
    SectionPlan(
        id="entropy",
        title="How widely each layer looks",
        text=(
            "Entropy tells a head that averages over the whole input from one that picks single "
            "tokens. Marks near the dashed line are close to uniform attention."
        ),
        pictures=("entropy_by_layer",),
    ),
)
