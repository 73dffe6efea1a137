"""What follows from results without a model: tables, roles of heads, telling sentences."""

from headscope.derived.claims import Claim, all_claims
from headscope.derived.reading import HeadMetric, head_metrics, head_name
from headscope.derived.roles import CLARK_BROAD_NATS, ROLES, head_roles
from headscope.derived.tables import tidy, write_tables
from headscope.derived.telling import telling_heads

__all__ = [
    "CLARK_BROAD_NATS",
    "ROLES",
    "Claim",
    "HeadMetric",
    "all_claims",
    "head_metrics",
    "head_name",
    "head_roles",
    "telling_heads",
    "tidy",
    "write_tables",
]
