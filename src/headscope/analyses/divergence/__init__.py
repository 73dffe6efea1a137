"""The question divergence: which heads behave alike?"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Option, Question, some_left, some_or_all
from headscope.claims.terms import CLARK, HENNIG07, HENNIG15, HUBERT, KAUFMAN, OURS, ROUSSEEUW, Term

QUERIES = 32  # ours: drawn in each input
TERMS = {
    "js": Term(
        "Jensen–Shannon divergence",
        "How differently two heads distribute attention, in nats: 0 when equal, ln 2 = 0.69 when "
        "they never attend to the same token; mean over tokens, then inputs.",
        f"{CLARK}, §6",
    ),
    "mds": Term(
        "map of heads",
        "Heads placed on a plane (multidimensional scaling) so that distances come as near as they "
        "can to the divergences; the axes themselves mean nothing.",
        f"{CLARK}, §6",
    ),
    "mds_stress": Term(
        "stress",
        "How far the map’s distances miss the divergences; 0 would be exact.",
        f"{CLARK}, §6",
    ),
    "cluster": Term(
        "cluster of heads",
        "Heads that attend alike: k-medoids on the root of the Jensen–Shannon divergence, numbered "
        "by depth, from 1 in print and from 0 in data.",
        KAUFMAN,
    ),
    "cluster_count": Term(
        "number of clusters",
        "The number at which the mean silhouette stands farthest above that of points without "
        "clusters.",
        f"{HENNIG15}; the criterion is ours",
    ),
    "cluster_p": Term(
        "p of no clusters",
        "How often points without clusters, normal with the main axes of the heads, stand out as "
        "much at any number of clusters.",
        HENNIG15,
    ),
    "medoid": Term(
        "medoid", "The typical head of a cluster: the one nearest to all its others.", KAUFMAN
    ),
    "silhouette": Term(
        "silhouette",
        "How much nearer a head is to its own cluster than to the next, of the larger of both "
        "distances: 1 is clear, 0 lies between two clusters, below 0 the other is nearer.",
        ROUSSEEUW,
    ),
    "stays": Term(
        "stays",
        "The share of draws of heads in which a head is in one cluster with the medoid of its own.",
        f"{HENNIG07}; the measure is ours",
    ),
    "jaccard": Term(
        "found again",
        "How much of a cluster the most similar cluster of a draw of heads holds: heads in "
        "both over heads in either; above 0.75 stable, below 0.5 dissolved.",
        HENNIG07,
    ),
    "stability": Term(
        "stability of clusters",
        "The adjusted Rand index of the clusters with those of a draw of heads: 1 if the "
        "same, about 0 by chance; mean over replicates, and where 95 % of them lie.",
        HUBERT,
    ),
    "layer_js": Term(
        "divergence within and between layers",
        "The mean Jensen–Shannon divergence of two heads of the same layer, and of two heads of "
        "different layers.",
        f"{CLARK}, §6; the statistic is ours",
    ),
    "nearest_layer": Term(
        "layer of the most alike head",
        "For how many heads the head of smallest divergence is in the same layer, in a "
        "neighbouring one, or farther away.",
        OURS,
    ),
}
QUESTION = Question(
    name="divergence",
    package=__name__,
    slow=True,
    place=80,
    measure="measure:Divergence",
    summary="which heads behave alike: divergence of all pairs, a map, clusters",
    source="Clark et al. 2019, §6",
    needs=frozenset({"attention", "whole_rows"}),
    options={
        "smoothing": Option(0.0, check_value=some_left),
        "reduction": Option("mean", ("mean", "sum")),
        "queries": Option(QUERIES, check_value=some_or_all),
    },
    controlled=True,
    figures=(
        PicturePlan(
            name="divergence_map",
            title="The map of heads",
            panels="figure:map_panels",
            caption="figure:map_caption",
        ),
        PicturePlan(
            name="divergence_matrix",
            title="How far heads differ",
            panels="figure:matrix_panels",
            caption="figure:matrix_caption",
            columns=1,
        ),
        PicturePlan(
            name="clusters",
            title="Heads that attend alike",
            id="clusters",
            panels="figure_clusters:panels",
            caption="figure_clusters:caption",
            finding="clusters:finding",
            text="Which heads do the same thing, whatever it is? Clusters are made from attention "
            "alone, and named afterwards by what their heads do; a cluster that no label fits is "
            "mixed.",
            columns=1,
            wide=True,
        ),
        PicturePlan(
            name="cluster_tree",
            title="The tree of heads",
            panels="figure_cluster_checks:tree_panels",
            caption="figure_cluster_checks:tree_caption",
            columns=1,
            wide=True,
        ),
        PicturePlan(
            name="cluster_number",
            title="How many clusters, and how sure",
            id="cluster-number",
            heading="How sure are the clusters?",
            panels="figure_cluster_checks:number_panels",
            caption="figure_cluster_checks:number_caption",
            finding="figure_cluster_checks:finding",
            text="Clusters can be made of anything. These are worth their names as far as heads "
            "are nearer to their own cluster than to the next, more so than in a cloud without "
            "clusters, and as far as other heads drawn from these give the same.",
            columns=3,
        ),
        PicturePlan(
            name="layers_alike",
            title="Are the heads of a layer alike?",
            id="layers-alike",
            panels="figure_layers:panels",
            caption="figure_layers:caption",
            finding="figure_layers:finding",
            text="On the map of BERT, Clark et al. (2019) saw heads of a layer near each other. If "
            "that holds, divergence is least within a layer and grows with the distance of layers.",
        ),
    ),
    section="figure:MAP_SECTION",
    terms=TERMS,
    tables="clusters:tables",
    card="clusters:CARD",
    places="figure:places",
)
