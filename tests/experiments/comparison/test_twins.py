"""Do planted heads of decoders find their twins in another architecture, and do heads of a network
that has learned nothing find none?
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.claims.control import controls
from headscope.core.accumulators import Bools
from headscope.experiments.comparison.same_roles import same_roles
from headscope.run import control
from headscope.wired import WiredHead, annotated_corpus, wire
from headscope.wired.decks import deck
from headscope.wired.heads import TAKES

SHARP, ENOUGH = 10.0, 23  # of 24: 95 %
SHAPES = {"gpt2": (4, 6), "llama": (3, 8)}
ORDERS = {family: np.random.default_rng(at).permutation(24) for at, family in enumerate(SHAPES)}


def heads_of(family: str) -> list[WiredHead]:
    """The 24 heads: all that both decks have and that take something, and one more.

    Where heads of the decks rest, those of Llama take nothing from its opening token, and those of
    GPT-2 take the first word. Here both take it, so that they do the same.
    """
    both = [{head.name: head for head in deck(one, "sentences", SHARP)} for one in SHAPES]
    kept = [name for name, head in both[0].items() if name in both[1] and head.value.gain]
    own = both[list(SHAPES).index(family)]
    more = WiredHead("three back", reach={-3: SHARP})
    return [*(replace(own[name], value=TAKES) for name in kept), more]


@pytest.fixture(scope="module")
def trees() -> dict[str, xr.DataTree]:
    """Both runs, each with the heads in an order of its own."""
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control, "MOST_SHUFFLED", 1)
        for family, (layers, heads) in SHAPES.items():
            every = heads_of(family)
            places = ORDERS[family].reshape(layers, heads)
            wired = wire(family, [[every[at] for at in row] for row in places], turned=True)
            made[family] = hs.atlas(
                hs.load(wired.network, tokenizer=wired.tokenizer),
                annotated_corpus(40, each=2),
                analyses=["explained"],
                control="random",
                execution=hs.Execution(linears="stock", threads=1),
            ).tree
    return made


def twins(roles: xr.Dataset, first: str, second: str) -> Bools:
    """[unit] whether the nearest head is the same one."""
    width = SHAPES[second][1]
    nearest = width * roles["other_layer"][..., 0] + roles["other_head"][..., 0]
    return ORDERS[second][nearest.values.ravel().astype(int)] == ORDERS[first]


@pytest.mark.parametrize(("first", "second"), [("gpt2", "llama"), ("llama", "gpt2")])
def test_planted_heads_find_their_twins_where_the_future_is_hidden(trees, first, second):
    roles = same_roles([trees[first]], [trees[second]])
    right = twins(roles, first, second)
    assert right.sum() >= ENOUGH
    sure = (roles["margin_ci_low"] > 0).values.ravel()
    assert sure.sum() >= 10
    assert right[sure].all()


def test_a_network_without_training_has_no_twins(trees):
    """One network of the control in place of the second model, the other one beside it."""
    one, other = controls(trees["llama"])
    groups = {path: node.to_dataset() for path, node in trees["gpt2"].subtree_with_keys}
    groups = {path: node for path, node in groups.items() if "control" not in path}
    groups |= {"control": xr.Dataset(), "control/none": xr.Dataset(attrs=one.attrs)}
    groups["control/none/explained"] = one["explained"].to_dataset()
    roles = same_roles([xr.DataTree.from_dict(groups)], [other])
    assert not (roles["margin_ci_low"] > 0).any()
