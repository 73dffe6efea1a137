"""What follows from results without a model: tables, roles of heads, telling sentences."""

from headscope.derived.best_heads import best_heads, coreference_heads, top_frame_heads
from headscope.derived.claim import Claim
from headscope.derived.claims import all_claims
from headscope.derived.clusters import Cluster, Near, cluster_of, clusters, nearest_heads
from headscope.derived.labels import UNLABELLED, HeadLabels, head_labels, run_labels
from headscope.derived.paper_tables import clark_table_1, clark_table_2
from headscope.derived.reading import HeadMetric, head_metrics, head_name
from headscope.derived.roles import CLARK_BROAD_NATS, ROLES, head_roles
from headscope.derived.tables import tidy, write_tables
from headscope.derived.telling import telling_heads

__all__ = [
    "CLARK_BROAD_NATS",
    "ROLES",
    "UNLABELLED",
    "Claim",
    "Cluster",
    "HeadLabels",
    "HeadMetric",
    "Near",
    "all_claims",
    "best_heads",
    "clark_table_1",
    "clark_table_2",
    "cluster_of",
    "clusters",
    "coreference_heads",
    "head_labels",
    "head_metrics",
    "head_name",
    "head_roles",
    "nearest_heads",
    "run_labels",
    "telling_heads",
    "tidy",
    "top_frame_heads",
    "write_tables",
]
