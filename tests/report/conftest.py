"""What do the tests of a report share? Pages without pictures, and one for the browser."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

from headscope.report.build import build_report, render
from report.synthetic import make_manifest, make_tree
from report.synthetic_examples import add_inputs
from report.synthetic_language import add_language
from report.synthetic_patterns import add_patterns

EVIL = [
    "</script><img src=x onerror=alert(1)>", "<!--<script>", "{{7*7}}", '","start":null,"',
    "${alert(1)}", "\u2028", "\ud800", "]]>", "\u202eevil", "<iframe src=//x>",
]  # fmt: skip
HOSTILE = ["[CLS]", *EVIL[:5], "[SEP]", *EVIL[5:], "[SEP]"]


@pytest.fixture
def no_pictures(monkeypatch):
    """Pages without pictures, which take most of their time."""
    monkeypatch.setattr("headscope.report.build.pictures", dict)


def whole_run() -> xr.DataTree:
    """A run with everything, of fifty relations."""
    tree = add_language(make_tree(), relations=50)
    return add_patterns(add_inputs(tree), maps=False)


@pytest.fixture(scope="session")
def whole() -> xr.DataTree:
    """A run with everything; only to be read."""
    return whole_run()


@pytest.fixture(scope="session")
def whole_page(whole, made_once) -> str:
    """Its page, with all pictures."""
    return made_once("whole.html", lambda: render(whole, make_manifest(whole)))


@pytest.fixture(scope="session")
def hostile_tree() -> xr.DataTree:
    """A run whose inputs and relations have hostile words."""
    return add_inputs(add_language(make_tree(6, 12), hostile=True), pair=HOSTILE)


@pytest.fixture(scope="session")
def hostile_report(hostile_tree, tmp_path_factory) -> Path:
    """Its report, without pictures: for what a browser does with the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.report.build.pictures", dict)
        patch.setattr("headscope.report.build.save_figures", lambda *_, **__: [])
        return build_report(
            hostile_tree, make_manifest(hostile_tree), tmp_path_factory.mktemp("report")
        )
