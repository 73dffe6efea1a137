"""Does a report of two models open with what changed, and show both where it shows examples?"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from counting import counts_from_0
from experiments.comparison.pairs_made import EVIL, compared
from headscope.report.build import render
from recorded import manifest_of, recorded
from views.made import read_back


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A comparison with its report, without pictures: test_comparison_figures draws them."""
    run = compared(tmp_path_factory.mktemp("pair"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.report.build.pictures", dict)
        patch.setattr("headscope.report.build.save_figures", lambda *_, **__: [])
        run.report()
    return run


@pytest.fixture(scope="module")
def html(run):
    return (run.path / "report.html").read_text("utf-8")


def test_the_page_begins_with_what_changed(html):
    assert "<title>What tuned &lt;b&gt; does otherwise than base</title>" in html
    assert html.index('id="comparison"') < html.index('id="telling"')
    for part in ("similarity", "training", "change", "words-change", "changed-examples"):
        assert f'<section id="{part}" class="folded"' in html
    assert "Attention changed most in layer 4" in html
    assert re.search('href="#term-sure" title="[^"]*">Rose</a>', html)
    assert 'id="term-sure"' in html


def test_a_report_of_one_model_has_no_such_section(monkeypatch):
    monkeypatch.setattr("headscope.report.build.pictures", dict)
    tree = recorded(3, 3)
    html = render(tree, manifest_of(tree))
    assert 'id="comparison"' not in html
    assert "otherwise than" not in html


def test_names_of_models_and_documents_do_no_harm(html):
    assert "tuned <b>" not in html
    assert EVIL not in html
    assert "onerror=alert(1)>" not in html.replace("onerror=alert(1)&gt;", "")


def test_the_examples_open_with_the_maps_of_both_models(run, html):
    held = json.loads(re.search(r'id="views">(.*?)</script>', html, re.DOTALL)[1])
    examples = run["examples"]
    assert len(held["pages"]) == examples.sizes["input"]
    stack = held["pages"][0]["payload"]["stacks"][0]
    names = [measure["name"] for measure in stack["measures"]]
    assert "versus" in names
    assert "those whose maps changed most" in html
    assert f'data-unit="{_most_different(examples)}" hidden>' in html
    assert "in both models</button>" in html
    versus = stack["measures"][names.index("versus")]
    assert versus["label"] == "attention, base"
    n = int((examples["token_count"].values[0] > 0).sum())
    found = read_back(held["pages"][0]["payload"], names.index("versus"))
    np.testing.assert_allclose(
        found, examples["versus_attention"].values[0, :, :, :n, :n], atol=0.005
    )


def _most_different(examples):
    """The head of the smallest cosine in the first input."""
    n = int((examples["token_count"].values[0] > 0).sum())
    maps = [
        examples[name].values[0, :, :, :n, :n].astype(np.float64).reshape(-1, n * n)
        for name in ("token_attention", "versus_attention")
    ]
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(*maps, strict=True)]
    return int(np.argmin(cosines))


def test_the_tables_hold_every_head_every_layer_and_the_examples(run):
    tables = run.path / "tables"
    change = pd.read_csv(tables / "change.csv")
    dataset = run["change"]
    assert len(change) == dataset["difference"].size
    row = change[(change["quantity"] == "surface.attention.sep") & (change["name"] == "L4·H2")]
    cell = dataset.sel(quantity="surface.attention.sep", layer=3, head=1)
    assert row["difference"].item() == pytest.approx(float(cell["difference"]))
    assert row["after"].item() - row["before"].item() == pytest.approx(row["difference"].item())
    assert row["sure"].item() == {1: "rose", -1: "fell", 0: "unsure"}[int(cell["sure"])]
    summary = pd.read_csv(tables / "change_summary.csv")
    assert summary["heads_rose"].tolist() == dataset["rose"].values.tolist()
    assert len(pd.read_csv(tables / "change_by_layer.csv")) == dataset["layer_before"].size
    examples = pd.read_csv(tables / "changed_examples.csv")
    assert examples["change"].is_monotonic_decreasing
    assert examples["rank"].tolist() == list(range(1, len(examples) + 1))
    similarity = pd.read_csv(tables / "similarity.csv")
    assert {"cosine", "js", "layer_cosine", "gradient_norm"} <= set(similarity["metric"])


def test_names_on_the_page_of_a_comparison_count_from_0_if_asked(run, monkeypatch):
    monkeypatch.setattr("headscope.report.build.pictures", dict)
    counts_from_0(lambda: render(run.tree, run.manifest))
