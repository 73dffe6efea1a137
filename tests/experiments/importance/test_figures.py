"""Do the figures show every head where its numbers are, with correlations that are the run's?"""

from __future__ import annotations

import numpy as np
from benchmarks import gradients as benchmark
from benchmarks.inputs import fixed

from draw.drawn import texts
from headscope.draw.figures import draw, pictures
from headscope.experiments.importance.result import METHODS
from headscope.experiments.importance.section import (
    gradient_finding,
    importance_findings,
    named_units,
)


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
        named = {f"L{unit // 3 + 1}·H{unit % 3 + 1}"
                 for unit in named_units(found["importance"], method)}  # fmt: skip
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
    assert not any("Rank correlation" in text for text in importance_findings(tree))


def test_the_sentence_on_separators_has_the_runs_numbers(found):
    tree = found.tree.copy(deep=True)
    gradients = tree["gradients"]
    gradients["layer_magnitude"].values[:] = [[1, 0.04, 1, 0.02], [1, 0.002, 1, 0.01]]
    gradients["layer_attention"].values[:] = [[0, 0.1, 0, 0.9], [0, 0.7, 0, 0.3]]
    assert gradient_finding(tree) == (
        "Per edge, |∂loss/∂α| to [SEP] is 0.04 in layer 1 and 0.0020 in layer 2, 2.00 and 0.20 "
        "times that to other tokens; it is least in layer 2. Attention to [SEP] is highest in "
        "layer 2 (70 %), where the gradient is 0.20 times that to other tokens."
    )


def test_every_way_of_the_benchmark_gives_the_same_gradients():
    from contextlib import ExitStack

    shape = {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 48}
    with ExitStack() as stack:
        rows, ways = benchmark.pipelines(
            fixed(4, length=32), stack, intermediate_size=64, **shape
        )  # fmt: skip
        for row in rows:
            row.run()
    assert benchmark.disagreement(ways) < benchmark.AGREE
