"""What the control of a run shows: networks without training that have read a sample of its inputs.

The group `control` of a run holds one group per network, in which the groups of analyses lie as
they do in the run itself. A run without one, of before there were controls or by wish, has no such
group: nothing is held against anything there.
"""

import xarray as xr

from headscope.core.results import derived

CONTROL = "control"


@derived
def controls(tree: xr.DataTree) -> list[xr.DataTree]:
    """The networks of the control, each to be read as a run; none where the run has no control."""
    if CONTROL not in tree.children:
        return []
    return list(tree.children[CONTROL].children.values())
