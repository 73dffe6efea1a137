"""What a report says of the analysis `neurons`."""

from __future__ import annotations

from headscope.page.sections import SectionPlan

SECTIONS = (
    SectionPlan(
        id="neurons",
        title="How many neurons make a score",
        text=(
            "A score is a sum over the neurons of query and key. Looking at single heads, Vig "
            "(2019) found that heads for [SEP] use few neurons, the same at every position, and "
            "next-word heads many, others at each. If that holds for all heads, the former stand "
            "high and left in (c), and the latter low and right."
        ),
        pictures=("neurons",),
    ),
    SectionPlan(
        id="neuron-sources",
        title="Where first-layer scores come from",
        text=(
            "Before any layer has mixed them, a token’s vector is the sum of its word, its "
            "position and its segment. A head that finds the next word must read positions; one "
            "that keeps to a segment may read segments, or positions too."
        ),
        pictures=("neuron_sources",),
    ),
)
