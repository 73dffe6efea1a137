"""What a report says of the analysis `norms`."""

from __future__ import annotations

from headscope.page.sections import SectionPlan

SECTIONS = (
    SectionPlan(
        id="norms",
        title="Weight against norm",
        text=(
            "Attention is only a weight: what a token contributes is the weight times the vector "
            "that it multiplies. Where a category draws much attention in (a) but stays low in "
            "(b), the head looks there in order to do little."
        ),
        pictures=("weight_against_norm",),
    ),
    SectionPlan(
        id="cancellation",
        title="Does the norm cancel the weight?",
        text=(
            "If heads use some tokens as a place to rest, their largest weights should fall on the "
            "shortest vectors."
        ),
        pictures=("cancellation",),
    ),
    SectionPlan(
        id="frequency",
        title="Does frequency matter?",
        text=(
            "Frequent words carry little news. A model that knows this gives them short vectors, "
            "whatever attention they draw."
        ),
        pictures=("frequency",),
    ),
)
