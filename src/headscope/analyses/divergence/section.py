"""What a report says of the analysis `divergence`."""

from __future__ import annotations

from headscope.analyses.divergence.figure import map_caption
from headscope.page.sections import SectionPlan

SECTIONS = (
    SectionPlan(
        id="clusters",
        title="Heads that attend alike",
        text=(
            "Which heads do the same thing, whatever it is? Clusters are made from attention "
            "alone, and named afterwards by what their heads do; a cluster that no label fits is "
            "mixed."
        ),
        pictures=("clusters",),
    ),
    SectionPlan(
        id="cluster-number",
        title="How sure are the clusters?",
        text=(
            "Clusters can be made of anything. These are worth their names as far as heads are "
            "nearer to their own cluster than to the next, more so than in a cloud without "
            "clusters, and as far as other documents give the same."
        ),
        pictures=("cluster_number",),
    ),
    SectionPlan(
        id="layers-alike",
        title="Are the heads of a layer alike?",
        text=(
            "On the map of BERT, Clark et al. (2019) saw heads of a layer near each other. If that "
            "holds, divergence is least within a layer and grows with the distance of layers."
        ),
        pictures=("layers_alike",),
    ),
    SectionPlan(
        id="map",
        title="The map of heads",
        text=(
            "Heads that distribute their attention alike lie close together, whatever their layer."
        ),
        map_caption=map_caption,
        place=180,
    ),
)
