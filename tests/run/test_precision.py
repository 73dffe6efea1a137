"""Do runs in half precision say what that was seen to cost, and is it no more on another text?"""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
from benchmarks.precision import compared

import headscope as hs
from headscope.core.wording import HALF, precision_in_words, precision_of
from headscope.report.run_facts import facts


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """dtype -> a run of the demo model on one document."""
    given = {"analyses": ("entropy",), "limit": 1, "replicates": 0}
    return {
        dtype: hs.atlas(
            hs.load("demo", dtype=dtype),
            hs.demo_corpus(),
            output=tmp_path_factory.mktemp(dtype) / "run",
            **given,
        )
        for dtype in ("float32", *HALF)
    }


@pytest.mark.parametrize("dtype", HALF)
def test_entropies_err_by_no_more_than_is_said(runs, dtype):
    """6e-3 nats were promised for bfloat16, and more was seen."""
    found, wanted = (runs[name]["entropy"].entropy.sel(query="all") for name in (dtype, "float32"))
    error = np.abs(found.values - wanted.values).max()  # over [layer, head]
    assert 0 < error <= HALF[dtype][0]


def test_words_that_flip_are_counted_by_cell():
    """Of 30 words of the first relation 6 and 9 are found, of 10 of the other 5 and 4."""

    def made(first, second, head):
        cells = np.array([first / 30, second / 10]).reshape(1, 1, 1, 2)
        place = {
            f"best_{part}": ("relation", [at, 0])
            for part, at in (("layer", 0), ("head", head), ("direction", 0))
        }
        dims = ("layer", "head", "direction", "relation")
        return xr.Dataset({"accuracy": (dims, cells), "count": ("relation", [30, 10]), **place})

    assert compared(made(6, 5, 0), made(9, 4, 2)) == (
        "2 of 2 cells differ, by 3 of 30 words at most; accuracy by 10.0 points at most, of "
        "relations with 25 words or more; 1 of 1 best heads are others"
    )


def test_wide_numbers_have_nothing_to_say():
    for dtype in ("float32", "float64"):
        assert precision_of(dtype) == {}
        assert not precision_in_words(dtype)


@pytest.mark.parametrize("dtype", ["float32", *HALF])
def test_manifest_and_report_say_it_of_half_precision_alone(runs, dtype):
    run = runs[dtype]
    manifest = json.loads((run.path / "manifest.json").read_text("utf-8"))
    told = {fact.label: fact.value for fact in facts(run.tree, manifest)}
    half = dtype in HALF
    assert ("Precision" in told) == half == ("head_entropy_error_nats" in manifest["model"])
    if half:
        assert told["Precision"].startswith(f"{dtype}: ")
        assert f"up to {HALF[dtype][0]:g} nats" in told["Precision"]
        assert f"up to {100 * HALF[dtype][2]:g} % of them" in told["Precision"]
        assert manifest["model"]["found_words_error"] == HALF[dtype][2]
