"""What differs between architectures: where attention lives and what surrounds it."""

from headscope.model.families.layout import LAYOUTS, Layout
from headscope.model.families.sites import (
    Site,
    configurations,
    find_sites,
    registered,
    unlisted_site,
)

__all__ = [
    "LAYOUTS",
    "Layout",
    "Site",
    "configurations",
    "find_sites",
    "registered",
    "unlisted_site",
]
