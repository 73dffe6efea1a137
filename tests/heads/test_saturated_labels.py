"""Does a head that does one thing alone keep its label, whoever is beside it?"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import xarray as xr

from heads.test_notable_heads import QUIET, quiet_tree
from headscope.claims.head_labels import head_labels
from headscope.core.accumulators import REPLICATES
from headscope.core.intervals import SHARE, estimate
from recorded import DECODER, recorded

DOCUMENTS = (100, 1_000, 10_000, 100_000, 1_000_000)
FORMS = ("the same in all", "all but one", "one in a thousand")
ENDS = ("", "_ci_low", "_ci_high")


def share_of(form: str, documents: int) -> list[float]:
    """The mean of so many documents and the ends of its interval, as a run makes it."""
    parts = np.ones(documents)
    parts[0] -= 0.8 * (form == "all but one")
    parts[::1000] -= 0.5 * (form == "one in a thousand")
    groups = min(documents, REPLICATES)
    of_group = np.arange(documents) % groups
    sums, count = (np.bincount(of_group, weights) for weights in (parts, np.ones(documents)))
    total, sizes = (np.concatenate([[one.sum()], one.sum() - one]) for one in (sums, count))
    found = estimate(total / sizes, bounds=SHARE, sizes=sizes)
    return [float(end) for end in (found.value, found.low, found.high)]


def planted(tree: xr.DataTree, group: str, variable: str, **choice: str) -> xr.DataTree:
    """Every head has the number of some form and number of documents."""
    dataset = tree[group].to_dataset().copy(deep=True)
    for at, case in enumerate(product(FORMS, DOCUMENTS)):
        place = dict(zip(("layer", "head"), divmod(at, 4), strict=True))
        for end, value in zip(ENDS, share_of(*case), strict=True):
            dataset[variable + end].loc[place | choice] = value
    tree[group].dataset = dataset
    return tree


def decoder() -> xr.DataTree:
    tree = recorded(4, 4, groups=("surface", "entropy", "distance"), kind=DECODER)
    inputs = ("window", [900.0, 40.0])
    tree["distance"].dataset = tree["distance"].to_dataset().assign(streaming_inputs=inputs)
    for name in ("attention", "nearby", "streaming", "rest_attention"):
        group = tree["distance" if name in ("nearby", "streaming") else "surface"]
        group.dataset = group.to_dataset().assign(
            {name + end: group[name] * 0 + 0.1 for end in ENDS}
        )
    return tree


@pytest.mark.parametrize(
    ("kind", "make", "where"),
    [
        *(
            (kind, quiet_tree, ("surface", "attention", {"target": kind}))
            for kind in ("self", "previous", "next", "cls", "sep", "punctuation")
        ),
        ("broad", quiet_tree, ("entropy", "relative_entropy", {"query": "all"})),
        ("first", decoder, ("surface", "attention", {"target": "first"})),
        ("nearby", decoder, ("distance", "nearby", {})),
        ("streaming", decoder, ("distance", "streaming", {"window": "4+64"})),
    ],
)
def test_a_label_is_never_lost_as_documents_grow(kind, make, where):
    group, variable, choice = where
    found = head_labels(planted(make(), group, variable, **choice))
    for at, case in enumerate(product(FORMS, DOCUMENTS)):
        labels = found[divmod(at, 4)].labels  # a sink on [SEP] says [SEP] better
        assert kind in {said for label in labels for said in (label.kind, label.about)}, case


def test_few_documents_make_no_label_however_alike_they_are():
    tree = quiet_tree()
    dataset = tree["surface"].to_dataset().copy(deep=True)
    for end, value in zip(ENDS, share_of("the same in all", 4), strict=True):
        dataset["attention" + end].loc[{"target": "previous"}] = value
    tree["surface"].dataset = dataset
    assert not any(one.labels for one in head_labels(tree).values())


def moved(tree: xr.DataTree, order: list[int]) -> xr.DataTree:
    """The same heads in other places of their layers."""
    groups = {
        name: child.to_dataset().isel(head=order).assign_coords(head=range(len(order)))
        for name, child in tree.children.items()
    }
    made = xr.DataTree.from_dict(groups)
    made.attrs = tree.attrs
    return made


def test_a_head_has_the_same_labels_in_another_place():
    tree = recorded(6, 12, groups=(*QUIET, "sinks"))
    order = np.random.default_rng(0).permutation(12).tolist()
    here, there = head_labels(tree), head_labels(moved(tree, order))
    for (layer, head), one in there.items():
        assert one.text == here[layer, order[head]].text


def test_what_other_heads_look_at_changes_no_label():
    tree = recorded(6, 12, groups=(*QUIET, "sinks"))
    before = head_labels(tree)
    surface = tree["surface"].to_dataset().copy(deep=True)
    for end in ENDS:
        surface["attention" + end].values[1:] = 0.0
        surface["attention" + end].loc[{"layer": slice(1, None), "target": "sep"}] = 1.0
    tree["surface"].dataset = surface
    after = head_labels(tree)
    for head in range(12):
        kinds = ({label.kind for label in one[0, head].labels} for one in (before, after))
        assert len(set(map(frozenset, kinds))) == 1
