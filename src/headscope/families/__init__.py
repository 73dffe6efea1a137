"""What differs between architectures: where attention lives and what surrounds it."""

from headscope.families.layout import LAYOUTS, Layout
from headscope.families.sites import Site, find_sites, registered

__all__ = ["LAYOUTS", "Layout", "Site", "find_sites", "registered"]
