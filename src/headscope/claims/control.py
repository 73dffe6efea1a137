"""What the control of a run shows: networks without training that have read a sample of its inputs.

The group `control` of a run holds one group per network, in which the groups of analyses lie as
they do in the run itself. A run without one, of before there were controls or by wish, has no such
group, and nothing is compared there.
"""

import xarray as xr

from headscope.core.results import counted, derived

CONTROL = "control"
BASE = "base"
COMPARED = "compared"  # attribute of variables that a control keeps though they are no numbers
FRESH = "untrained"  # the network whose weights are as the architecture draws them


@derived
def controls(tree: xr.DataTree) -> list[xr.DataTree]:
    """The networks of the control, each as a run; empty without a control."""
    if CONTROL not in tree.children:
        return []
    return list(tree.children[CONTROL].children.values())


def is_fresh(network: xr.DataTree) -> bool:
    """Whether a network of the control has freshly initialised weights."""
    return str(network.attrs.get("model", "")) == FRESH


def sample_words(tree: xr.DataTree) -> str:
    """How much the networks of the control have read, and which part of long inputs."""
    attrs, unit = controls(tree)[0].attrs, counted(tree)
    units, tokens, window = (int(attrs.get(one, 0)) for one in ("documents", "tokens", "window"))
    words = f"{units:,} {unit.removesuffix('s') if units == 1 else unit}, {tokens:,} tokens"
    part = f" (of inputs of more than {window:,} tokens the first {window:,})"
    return words + part * bool(window)


@derived
def base_run(tree: xr.DataTree) -> xr.DataTree:
    """For a comparison with a control: the first model as a run with the same control.

    Both models have one shape and one tokenizer, so that all else is as in the second one's run.
    """
    groups = {**tree.children[BASE].children, CONTROL: tree.children[CONTROL]}
    names = {name: tree.attrs[f"base_{name}"] for name in ("model", "revision")}
    return xr.DataTree(xr.Dataset(attrs=tree.attrs | names), children=groups)
