"""Is nothing said of noise, and a label lost only where both numbers lie apart?"""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.claims.control import BASE, CONTROL, base_run, controls
from headscope.claims.head_labels import head_labels
from headscope.claims.reading import Reading, run_findings
from headscope.core.results import derived_once
from headscope.experiments.comparison import SIMILARITY
from headscope.experiments.comparison.compare import compare
from headscope.experiments.comparison.findings import (
    control_words,
    label_changes,
    labels_finding,
    remarks,
)
from headscope.report.build import render
from made_models import small_bert
from recorded import reading, recorded

SETTINGS = hs.Settings(analyses=("surface", "entropy"), replicates=10)
STOCK = hs.Execution(linears="stock", threads=1)


@pytest.fixture(scope="module")
def unknowing(tmp_path_factory):
    """Two networks of six layers of four heads with random weights."""
    folder = tmp_path_factory.mktemp("unknowing")
    return [hs.load(str(small_bert(folder / str(at), layers=6, seed=at))) for at in (0, 1)]


def corpus():
    """The beginnings of six documents."""
    some = islice(hs.demo_corpus(), 6)
    return hs.corpus.MemoryCorpus([replace(one, passages=one.passages[:4]) for one in some])


def read(models, control, **more):
    return compare(*models, corpus(), settings=SETTINGS, execution=STOCK, control=control, **more)


@pytest.fixture(scope="module")
def held(unknowing, tmp_path_factory):
    return read(unknowing, "random", output=tmp_path_factory.mktemp("held") / "run")


def labelled(tree):
    return sum(bool(one.labels) for one in head_labels(tree).values())


def test_of_two_random_networks_nothing_is_found(unknowing, held, monkeypatch):
    free, kept = read(unknowing, "none"), hs.open_run(held.path)
    assert labelled(free.tree) > 0.5 * 24  # by thresholds alone
    assert run_findings(free.tree)
    assert labels_finding(Reading(free.tree, SIMILARITY)) == ""  # nothing was held against anything
    for tree in (held.tree, kept.tree):
        with derived_once():
            assert labelled(tree) <= 0.05 * 24
            assert labelled(base_run(tree)) <= 0.05 * 24
            assert run_findings(tree) == []
            assert "Both look untrained" in control_words(tree)
    assert BASE not in list(kept)
    names = [network.attrs["model"] for network in controls(held.tree)]
    assert names == ["untrained", "shuffled", "shuffled 2", "shuffled 3", "shuffled base"]
    monkeypatch.setattr("headscope.report.build.pictures", dict)
    page = render(held.tree, held.manifest)
    assert '<p class="lede">Of 24 heads each, ' in page
    assert 'class="findings"' not in page


def test_the_base_is_kept_as_an_atlas_of_it(unknowing, held):
    alone = hs.atlas(unknowing[0], corpus(), settings=SETTINGS, execution=STOCK)
    for name in ("surface", "entropy"):
        found = base_run(held.tree)[name].to_dataset()
        for variable in alone[name].data_vars:
            np.testing.assert_allclose(found[variable], alone[name][variable], atol=1e-6)


def pair(before, after, *, control=True):
    """Runs of which L1·H2 alone looks at the next token: (value, low, high) in both models."""
    groups = {}
    for name, (value, low, high) in ((f"{BASE}/surface", before), ("surface", after)):
        tree = recorded(2, 3, ("surface",))
        groups[name] = surface = tree["surface"].to_dataset()
        for end, number in (("", value), ("_ci_low", low), ("_ci_high", high)):
            surface["attention" + end][:] = 0.01
            surface["attention" + end].loc[{"layer": 0, "head": 1, "target": "next"}] = number
    if control:
        groups[f"{CONTROL}/untrained"] = xr.Dataset(attrs=tree.attrs)
    names = {"base_model": "first", "base_revision": "", "model": "second"}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=tree.attrs | names), **groups})


def changes(*sides, **more):
    with derived_once():
        found = label_changes(pair(*sides, **more))
    return {how: [(c.layer, c.head, c.name) for c in claims] for how, claims in found.items()}


NEXT = (0, 1, "next token")


def test_a_label_is_lost_or_gained_only_where_the_intervals_lie_apart():
    surely, hardly, below = (0.9, 0.85, 0.95), (0.55, 0.51, 0.6), (0.5, 0.45, 0.54)
    assert changes(surely, below) == {"lost": [NEXT], "gained": []}
    assert changes(below, surely) == {"lost": [], "gained": [NEXT]}
    assert changes(hardly, below) == {"lost": [], "gained": []}  # on both sides of 0.5
    assert changes(surely, hardly) == {"lost": [], "gained": []}  # both have it
    assert changes(surely, (0.01, 0.0, 0.02)) == {"lost": [NEXT], "gained": []}
    assert changes(surely, (0.5, np.nan, np.nan)) == {"lost": [], "gained": []}
    assert changes(surely, below, control=False) == {}


def test_a_lost_label_is_told_of_its_head():
    tree = pair((0.9, 0.85, 0.95), (0.2, 0.15, 0.25))
    assert remarks(reading(tree, "similarity")) == [
        [],
        ["lost: next token 90 % [85, 95]"],
        [],
        [],
        [],
        [],
    ]
    assert labels_finding(Reading(tree, SIMILARITY)) == (
        "Labels that heads surely lose: 1 (next token, 1 head); that they gain: 0."
    )
    assert control_words(tree).startswith(
        "Of 6 heads each, by surface, 1 of first and 0 of second stand out against "
    )
