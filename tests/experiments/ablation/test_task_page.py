"""Does the report of a run about a task say what was found, and nothing of what was not asked?"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from counting import counts_from_0
from headscope.claims.reading import Reading, run_findings
from headscope.core.head_names import counting_from
from headscope.experiments.ablation import ABLATION
from headscope.experiments.ablation.findings import (
    answers_finding,
    can_go_finding,
    most_frequent,
    most_moved,
    moves,
    smallest_told,
    verdict_finding,
)
from headscope.experiments.ablation.pruning import Pruning, prune_curves
from headscope.experiments.ablation.result import tables
from headscope.experiments.ablation.section import answers_table, scores_table
from headscope.experiments.ablation.settings import PruningSettings
from headscope.experiments.ablation.terms import remarks
from headscope.report import heads
from headscope.report.build import render
from headscope.report.heads import shown
from headscope.report.run_facts import run_summary
from headscope.run.execution import Execution
from headscope.run.manifest import training_history
from headscope.tasks.task_model import load_for_task
from recorded import manifest_of, reading, recorded
from tasks.made import MOOD, data

STOCK = Execution(linears="stock")

HISTORY = {
    "base": "some/base", "start": "new head", "task": "mood", "metric": "accuracy",
    "learned": 60, "scored": 24, "settings": {"epochs": 3},
    "before": {"value": 0.5, "ci_low": 0.3, "ci_high": 0.7},
    "after": {"value": 0.875, "ci_low": 0.75, "ci_high": None},
}  # fmt: skip


@pytest.fixture(scope="module")
def html(ablated):
    return (ablated.path / "report.html").read_text("utf-8")


def test_the_page_asks_its_own_question_and_drops_what_the_run_has_not(html):
    assert "Which heads of " in re.search(r"<title>(.*?)</title>", html)[1]
    assert '<p class="kicker">headscope ablate</p>' in html
    assert "Not part of this run" not in html
    for gone in ("telling", "surface", "language", "map"):
        assert f'<section id="{gone}"' not in html
        assert f'href="#{gone}"' not in html
    places = [
        html.index(f'<section id="{name}"')
        for name in (
            "grid",
            "task",
            "heads-off",
            "losses-off",
            "answers",
            "examples",
            "table",
            "run",
        )
    ]
    assert places == sorted(places)
    assert "read over 40 examples" in html
    assert "95 % intervals, paired over examples" in html.replace("\u00a0", " ")
    assert "documents, 40 examples" not in html


def test_sentences_count_what_the_data_hold(ablated):
    found = ablated["ablation"]
    words = found["verdict"].values.ravel().tolist()
    sentence = verdict_finding(reading(ablated.tree, "ablation"))
    for word in ("helpful", "harmful", "no effect", "cannot tell"):
        assert f"{words.count(word)} {word}" in sentence
    assert "Benjamini and Hochberg" in sentence
    changed = found["prediction"].values != found["baseline_prediction"].values
    same = int((~changed.any((0, 1))).sum())
    assert f"{same} of 40 answers" in answers_finding(reading(ablated.tree, "ablation"))
    labels = found["label"].values
    assert most_frequent(found)[1] == f"{100 * max(labels.mean(), 1 - labels.mean()):.1f} %"


def test_the_largest_rise_is_named_with_its_chance(ablated):
    tree = ablated.tree.copy(deep=True)
    found = tree["ablation"]
    found["difference"].values[:] = [[0.02, -0.04, 0.0], [0.01, -0.01, -0.02]]
    for q, verdict in ((0.2, "not told from chance (q = 0.20)"), (0.01, "more than chance")):
        found["q"].values[:] = 0.01
        found["q"].values[0, 0] = q  # of the head without which it rises
        (sentence,) = [s for s in run_findings(tree) if "falls most" in s]
        assert re.search(r"falls most without L1·H2 \(−4\.0 points", sentence)
        assert re.search(r"rises most without L1·H1 \(\+2\.0 points", sentence)
        assert verdict in sentence
    found["difference"].values[:] = [[-0.01] * 3, [-0.02] * 3]
    assert any("no head’s absence raises it" in s for s in run_findings(tree))
    found["difference"].values[:] = 0
    assert "No head changes accuracy." in run_findings(tree)


def test_after_the_score_the_largest_sure_effect_comes_first(ablated):
    tree = ablated.tree.copy(deep=True)
    ablation = tree["ablation"]
    for start in ("", "layer_", "loss_"):
        ablation[f"{start}q"].values[...] = 0.01
    ablation["difference"].values[...] = [[0.02, -0.04, 0.0], [0.01, -0.01, -0.02]]
    for layer, loss, wanted in (
        (-0.5, 1e-6, ["Of 2 layers", "Of 6 heads", "By the loss"]),
        (-0.01, 5.0, ["By the loss", "Of 6 heads", "Of 2 layers"]),
    ):
        ablation["layer_difference"].values[...] = [0.0, layer]
        ablation["loss_difference"].values[...] = loss
        said = run_findings(tree)
        assert said[0].startswith("Accuracy of the whole model")
        starts = [start for one in said for start in wanted if one.startswith(start)]
        assert starts == wanted
    ablation["loss_q"].values[...] = 0.9  # now it is not told from chance
    starts = [start for one in run_findings(tree) for start in wanted if one.startswith(start)]
    assert starts[-1] == "By the loss"


def test_the_grid_opens_with_a_number_that_varies(ablated):
    tree = ablated.tree.copy(deep=True)
    tree["ablation"]["difference"].values[...] = [[0.02, -0.04, 0.0], [0.01, -0.01, -0.02]]
    assert shown(tree).key == "ablation.difference"
    tree = ablated.tree.copy(deep=True)
    tree["ablation"]["difference"].values[...] = 0.0  # the score is at its ceiling
    assert shown(tree).key == "ablation.loss_difference"


def test_the_heading_tells_the_model_from_the_task(ablated, html):
    title = html.partition("<title>")[2].partition("</title>")[0]
    assert re.fullmatch(r"Which heads of .+ does the task .+ need\?", title)


def test_what_the_examples_cannot_tell_is_no_difference_and_what_they_could_is_said(ablated):
    tree = ablated.tree.copy(deep=True)
    found = tree["ablation"]
    found["difference"].values[:] = [[0.02, -0.04, 0.0], [0.01, -0.01, -0.02]]
    found["q"].values[:] = 0.2
    said = run_findings(tree)
    assert not any("falls most" in sentence for sentence in said)
    (sentence,) = [one for one in said if one.startswith("Without a single head")]
    assert "no difference that these 40 examples can tell" in sentence
    assert "without L1·H2 (−4.0 points" in sentence
    assert sentence.count("has q = 0.20") == 1
    # By McNemar's test with 6 heads: so many answers that all became wrong.
    told = next(k for k in range(1, 41) if 6 * binomtest(k, k).pvalue < 0.05)
    assert smallest_told(found.to_dataset()) == pytest.approx(told / 40)
    assert f"could tell is {100 * told / 40:.1f} points (corrected for 6 heads)" in sentence
    found["layer_verdict"].values[:] = "cannot tell"
    found["layer_difference"].values[:] = [0.0, -0.04]
    (sentence,) = [one for one in run_findings(tree) if one.startswith("Of 2 layers")]
    assert "no difference that these 40 examples can tell" in sentence
    assert "without layer 2 (−4.0 points" in sentence
    found["layer_verdict"].values[1] = "helpful"
    assert not any("Of 2 layers" in one and "can tell" in one for one in run_findings(tree))
    few = found.to_dataset().isel(example=slice(0, 5))
    assert np.isnan(smallest_told(few))


def test_answers_that_hang_on_most_heads_come_first_and_open(ablated, html):
    found = ablated["ablation"]
    changed = (found["prediction"].values != found["baseline_prediction"].values).sum((0, 1))
    order = most_moved(found)
    assert changed[order].tolist() == sorted(changed[changed > 0].tolist(), reverse=True)
    rows = answers_table(Reading(ablated.tree, ABLATION)).groups[0].rows
    assert rows[0][0].text == str(found["text"].values[order[0]])
    assert rows[0][3].text == str(changed[order[0]])
    assert found["text"].values.tolist() == [row.text_a for row in data(40).rows]
    views = json.loads(re.search(r'id="views">(.*?)</script>', html, re.DOTALL)[1])
    assert len(views["pages"]) == min(4, len(order))
    assert ablated["examples"]["input"].values[0] == found["example"].values[order[0]]
    assert "whose answers change with most heads off" in html


def test_every_flip_is_a_row_with_its_text(ablated):
    found = ablated["ablation"]
    table = pd.read_csv(ablated.path / "tables" / "ablation_flips.csv")
    single = table[table["head"].notna()]
    assert len(single) == int(moves(found).sum())
    row = single.iloc[0]
    at = found["example"].values.astype(str).tolist().index(str(row["example"]))
    assert row["text"] == found["text"].values[at]


def test_what_the_checkpoint_scored_before_and_after_stands_beside_it(ablated):
    table = scores_table(reading(ablated.tree, "ablation"), {"history": HISTORY})
    rows = {row[0].text: (row[1].text, row[1].small) for row in table.groups[0].rows}
    assert rows["some/base with an untrained head"] == ("50.0", "[30.0, 70.0]")
    assert rows["after training"] == ("87.5", "")
    assert any(name.startswith("always “") for name in rows)
    assert scores_table(reading(ablated.tree, "ablation"), {"history": None}) is None
    assert scores_table(reading(ablated.tree, "ablation"), {}) is None


def test_history_is_read_from_the_record_and_a_damaged_one_is_none(tmp_path):
    record = {
        "task": {"name": "mood", "metrics": ["accuracy"]},
        "model": {"name": "base", "start": "random"},
        "data": {"train": {"examples": 8}, "dev": {"examples": 4}},
        "settings": {"epochs": 2, "precision": "float32"},
        "metrics": {"before": {"accuracy": None}, "after": {"accuracy": 0.75, "ci_low": 0.5}},
    }
    file = tmp_path / "finetuned.json"
    file.write_text(json.dumps(record), "utf-8")
    found = training_history(str(tmp_path))
    assert found["before"]["value"] is None
    assert found["after"] == {"value": 0.75, "ci_low": 0.5, "ci_high": None}
    assert (found["start"], found["learned"], found["settings"]) == ("random", 8, {"epochs": 2})
    for text in ("{", "[]", '{"task": 3}'):
        file.write_text(text, "utf-8")
        assert training_history(str(tmp_path)) is None
    assert training_history("demo") is None


def test_numbers_below_0_get_both_hues_and_others_none(ablated):
    metrics = {m["key"]: m for m in heads.data(ablated.tree)["metrics"]}
    apart = ablated["ablation"]["difference"].values
    assert (apart < 0).any()
    assert metrics["ablation.difference"]["signed"]
    assert metrics["ablation.difference"]["top"] == pytest.approx(np.abs(apart).max(), rel=1e-3)
    assert not metrics["ablation.score"]["signed"]
    tree = recorded(2, 3, groups=("surface",))
    assert not any(m["signed"] for m in heads.data(tree)["metrics"])


def test_the_table_of_heads_says_which_are_helpful(ablated, html):
    tree = ablated.tree.copy(deep=True)
    tree["ablation"]["verdict"].values[0, 1] = "helpful"
    assert remarks(reading(tree, "ablation"))[1][0] == "helpful by accuracy"
    assert [c.key for c in heads.columns(tree)][:2] == ["ablation.difference", "ablation.q"]
    assert "<span>helpful by accuracy</span>" in render(tree, {})
    assert heads.remarks(recorded(2, 3)) == [[]] * 6


def test_an_atlas_keeps_its_page(html):
    tree = recorded(2, 3, groups=("surface",))
    page = render(tree, manifest_of(tree))
    assert "headscope atlas" in page
    assert 'id="task"' not in page
    assert "Not part of this run" in page


def test_hostile_names_of_classes_and_examples_stay_text(ablated):
    tree = ablated.tree.copy(deep=True)
    evil = "<img src=x onerror=alert(1)>"
    found = tree["ablation"].to_dataset()
    found = found.assign_coords(text=("example", [evil] * found.sizes["example"]))
    found.attrs["classes"] = f"{evil}\n{evil}2"
    tree["ablation"] = found
    page = render(tree, {"history": {**HISTORY, "base": evil, "settings": {evil: evil}}})
    assert evil not in page
    assert "&lt;img src=x" in page


def test_a_notebook_shows_the_findings(ablated):
    summary = run_summary(ablated.tree, ablated.manifest)
    assert "<b>headscope ablate of " in summary
    assert "Accuracy of the whole model" in summary


def test_a_pruning_says_how_many_can_go_and_what_the_other_half_says(mood):
    settings = PruningSettings(step=2, draws=2, replicates=20, batch_tokens=200)
    asked = Pruning(load_for_task(mood, MOOD), data(12, seed=1), data(24), settings)
    run = prune_curves(asked, execution=STOCK)
    found = run["pruning"]
    page = render(run.tree, run.manifest)
    assert "How many heads of " in page
    greedy = int(found["can_go"].sel(order="greedy"))
    assert f"{greedy} greedy" in can_go_finding(found)
    assert '<section id="pruning"' in page
    assert "Not part of this run" not in page


def test_names_on_the_page_of_an_ablation_count_from_0_if_asked(ablated, monkeypatch):
    monkeypatch.setattr("headscope.report.build.pictures", dict)
    counts_from_0(lambda: render(ablated.tree, ablated.manifest))
    before = tables(reading(ablated.tree, "ablation"))["ablation_effects"]["name"]
    with counting_from(0):
        after = tables(reading(ablated.tree, "ablation"))["ablation_effects"]["name"]
    assert before[0] == "L1·H1"
    assert after[0] == "L0·H0"
    counted = [re.sub(r"\d+", lambda at: str(int(at[0]) - 1), name) for name in before]
    assert after.tolist() == counted
    assert "L1·H2 + L2·H3" in set(before)
