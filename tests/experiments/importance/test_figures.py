"""Do the figures show every head where its numbers are, with correlations that are the run's?"""

from __future__ import annotations

import numpy as np
from benchmarks import gradients as benchmark
from benchmarks.inputs import fixed
from scipy.stats import norm

from draw.drawn import texts
from headscope.claims.reading import Reading, run_findings
from headscope.draw.figures import draw, pictures
from headscope.experiments.importance import GRADIENTS, IMPORTANCE
from headscope.experiments.importance.section import (
    difference_finding,
    gradient_finding,
    importance_table,
    named_units,
)
from headscope.experiments.importance.settings import METHODS


def test_each_head_is_a_mark_at_its_importance_and_effect(found):
    figure = draw(found.tree, "importance_against_ablation")
    importances = found["importance"]["head_importance"]
    effects = found["importance"]["effect_of_head"].sel(effect="loss").values
    panels = [axes for axes in figure.axes if axes.get_title("left")]
    for axes, method in zip(panels, METHODS, strict=True):
        values = importances.sel({"variant": method}).values
        marks = [line for line in axes.lines if line.get_marker() == "o"]
        assert len(marks) == len(values)
        for layer, line in enumerate(marks):
            np.testing.assert_allclose(line.get_xdata(), values[layer])
            np.testing.assert_allclose(line.get_ydata(), effects[layer])


def test_titles_tell_rho_and_names_count_from_one(found):
    figure = draw(found.tree, "importance_against_ablation")
    panels = [axes for axes in figure.axes if axes.get_title("left")]
    for axes, method in zip(panels, METHODS, strict=True):
        rho = float(found["importance"]["rho"].sel({"variant": method, "effect": "loss"}))
        assert f"ρ = {rho:.2f}".replace("-", "−") in axes.get_title("left")
        units = named_units(Reading(found.tree, IMPORTANCE), method)
        named = {f"L{unit // 3 + 1}·H{unit % 3 + 1}" for unit in units}
        assert set(texts(axes)) == named


def test_the_figure_of_gradients_has_a_line_for_each_kind_of_token(found):
    figure = draw(found.tree, "gradients")
    layers = found["gradients"]["layer_magnitude"]
    drawn = [line.get_ydata() for line in figure.axes[0].lines]
    assert len(drawn) == layers.sizes["category"]
    for values, wanted in zip(drawn, layers.transpose("category", "layer").values, strict=True):
        np.testing.assert_allclose(values, wanted)


def test_without_an_ablation_there_is_nothing_to_hold_importances_against(found):
    tree = found.tree.copy()
    kept = ["head_importance", "head_importance_ci_low", "head_importance_ci_high"]
    tree["importance"] = tree["importance"].to_dataset()[kept]
    assert not pictures()["importance_against_ablation"].available(tree)
    assert pictures()["importance"].available(tree)
    assert not any("Rank correlation" in text for text in run_findings(tree))


def test_the_sentence_on_separators_has_the_runs_numbers(found):
    tree = found.tree.copy(deep=True)
    gradients = tree["gradients"]
    gradients["layer_magnitude"].values[:] = [[1, 0.04, 1, 0.02], [1, 0.002, 1, 0.01]]
    gradients["layer_attention"].values[:] = [[0, 0.1, 0, 0.9], [0, 0.7, 0, 0.3]]
    assert gradient_finding(Reading(tree, GRADIENTS)) == (
        "Per edge, |∂loss/∂α| to [SEP] is 0.04 in layer 1 and 0.0020 in layer 2, 2.00 and 0.20 "
        "times that to other tokens; it is least in layer 2. Attention to [SEP] is highest in "
        "layer 2 (70 %), where the gradient is 0.20 times that to other tokens."
    )


def told_of(found, values, half):
    """The sentence on differences, where heads have these importances, all with such intervals."""
    tree = found.tree.copy(deep=True)
    importance = tree["importance"].to_dataset().copy(deep=True)
    method = {"variant": METHODS[0]}
    for end, by in (("", 0), ("_ci_low", -half), ("_ci_high", half)):
        cells = importance[f"head_importance{end}"].sel(method).transpose("layer", "head")
        importance[f"head_importance{end}"].loc[method] = np.reshape(values, cells.shape) + by
    tree["importance"].dataset = importance
    return difference_finding(Reading(tree, IMPORTANCE))


def test_the_most_important_head_is_told_from_others_only_beyond_both_intervals(found):
    longer = norm.isf(0.025 / 15) / norm.isf(0.025)  # six heads make fifteen pairs
    least = 2 * longer * 0.01
    values = [0.1, 1, 1 - least * 1.001, 1 - least * 0.999, 0.1, 0.1]
    sentence = told_of(found, values, 0.01)
    n = found.tree.attrs["documents"]
    assert "L1·H2 is most important, 1.00 [0.99, 1.01]" in sentence
    assert f"these {n} examples can tell from 4 of 5 other heads" in sentence
    assert f"the smallest that they could tell is about {least:.2f}" in sentence
    none = told_of(found, values, 1.0)
    assert f"heads show no difference that these {n} examples can tell" in none
    assert told_of(found, values, np.nan) == ""


def test_small_importances_keep_their_digits_and_large_ones_no_more_than_they_have(found):
    tree = found.tree.copy(deep=True)
    importance = tree["importance"].to_dataset().copy(deep=True)
    for end, share in (("", 1), ("_ci_low", 0.9), ("_ci_high", 1.1)):
        importance[f"head_importance{end}"][...] = 0.000012345 * share
    tree["importance"].dataset = importance
    cells = importance_table(Reading(tree, IMPORTANCE)).groups[0].rows[0][1:2]
    assert {(cell.text, cell.small) for cell in cells} == {("1.2e−5", "[1.1e−5, 1.4e−5]")}


def test_every_way_of_the_benchmark_gives_the_same_gradients():
    from contextlib import ExitStack

    shape = {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 48}
    with ExitStack() as stack:
        rows, ways = benchmark.pipelines(fixed(4, length=32), stack, intermediate_size=64, **shape)
        for row in rows:
            row.run()
    assert benchmark.disagreement(ways) < benchmark.AGREE
