"""Do the figures on neurons show the numbers of the run, and does the verdict follow from them?"""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

from draw.drawn import shades, steps_of, texts
from headscope.core.wording import fixed
from headscope.draw.figures import draw, pictures
from headscope.draw.style import LIGHT
from recorded import recorded

LAYERS, HEADS, WIDTH = 3, 4, 16
CONTRASTS = ["sep", "same_segment", "next"]
PARTS = ["word", "position", "segment", "bias"]
TARGETS = ["sep", "next", "previous"]


def _ends(dataset, name, dims, value, half):
    dataset[name] = (dims, value)
    dataset[f"{name}_ci_low"] = (dims, value - half)
    dataset[f"{name}_ci_high"] = (dims, value + half)


def make_neurons(*, rho=None, half=0.02, seed=0):
    """A result as the analysis gives it; rho [quantity, target]."""
    rng = np.random.default_rng(seed)
    rho = np.array([[-0.5, 0.5, 0.5], [0.5, -0.5, -0.5]]) if rho is None else np.array(rho)
    made = xr.Dataset(attrs={"set": 8})
    heads = ("layer", "head")
    _ends(made, "effective", heads, rng.uniform(2, 12, (LAYERS, HEADS)), 0.2)
    _ends(made, "position_overlap", heads, rng.uniform(0.3, 0.9, (LAYERS, HEADS)), half)
    made["chance_overlap"] = ((), 0.25)
    made["neuron_importance"] = ((*heads, "neuron"), np.full((LAYERS, HEADS, WIDTH), 1 / WIDTH))
    _ends(made, "rank_correlation", ("quantity", "target"), rho, half)
    split = rng.normal(size=(HEADS, 3, 4, 4))
    _ends(made, "embedding_separation", ("head", "contrast", "part", "part_other"), split, half)
    return made.assign_coords(
        quantity=["effective", "position_overlap"],
        target=TARGETS,
        contrast=CONTRASTS,
        part=PARTS,
        part_other=PARTS,
        layer=range(LAYERS),
        head=range(HEADS),
        neuron=range(WIDTH),
    )


def make(neurons=None, **options):
    tree = recorded(LAYERS, HEADS, **options)
    tree["neurons"] = xr.DataTree(make_neurons() if neurons is None else neurons)
    return tree


def marks_of(axes, word):
    """(x, y) of all marks of a colour."""
    found = [
        np.stack([line.get_xdata(), line.get_ydata()], -1)
        for line in axes.lines
        if to_hex(line.get_color()) == LIGHT[word] and line.get_marker() not in ("None", "")
    ]
    return np.concatenate(found) if found else np.zeros((0, 2))


def test_the_grids_show_both_numbers_of_every_head():
    tree = make()
    figure = draw(tree, "neurons")
    for axes, name in zip(figure.axes, ("effective", "position_overlap"), strict=False):
        values = tree["neurons"][name].values
        found = shades(axes, (LAYERS, HEADS))
        np.testing.assert_array_equal(found, steps_of(values, values.max()))


def test_every_head_is_one_mark_between_the_two_numbers():
    tree = make()
    axes = draw(tree, "neurons").axes[2]
    found = np.concatenate(
        [marks_of(axes, hue) for hue in ("grey", "vermillion", "orange", "sky", "green", "purple")]
        + [marks_of(axes, "blue")]
    )
    neurons = tree["neurons"]
    wanted = np.stack(
        [neurons["effective"].values.ravel(), neurons["position_overlap"].values.ravel()], -1
    )
    assert sorted(map(tuple, found)) == sorted(map(tuple, wanted))


def test_overlap_is_drawn_by_the_share_of_attention():
    tree = make()
    axes = draw(tree, "neurons").axes[3]
    share = tree["surface"]["attention"].sel(target="sep").values.ravel()
    wanted = np.stack([share, tree["neurons"]["position_overlap"].values.ravel()], -1)
    np.testing.assert_allclose(marks_of(axes, "vermillion"), wanted)


def test_without_attention_there_is_no_panel_of_it():
    tree = make(groups=("entropy",))
    assert len(pictures()["neurons"].panels(tree)) == 3
    caption = pictures()["neurons"].caption(tree)
    assert "(d)" not in caption
    assert "Where heads look is not part of this run" in caption
    assert "No head attends" not in caption
    draw(tree, "neurons")


@pytest.mark.parametrize(
    ("rho", "half", "answers"),
    [
        ([[-0.5, 0.5, 0.5], [0.5, -0.5, -0.5]], 0.02, ["yes"] * 6),
        ([[0.5, -0.5, -0.5], [-0.5, 0.5, 0.5]], 0.02, ["no, the opposite"] * 6),
        ([[-0.5, 0.5, 0.5], [0.5, -0.5, -0.5]], 0.6, ["neither way"] * 6),
        ([[-0.05, 0.05, 0.05], [0.05, -0.05, -0.05]], 0.01, ["neither way"] * 6),
        ([[-0.5, 0.5, 0.5], [0.5, -0.5, -0.5]], np.nan, ["not decided without an interval"] * 6),
        (
            [[-0.5, -0.5, 0.5], [0.5, 0.5, -0.5]],
            0.02,
            ["yes", "yes", "no, the opposite", "no, the opposite", "yes", "yes"],
        ),
    ],
)
def test_the_verdict_follows_from_the_correlations(rho, half, answers):
    caption = pictures()["neurons"].caption(make(make_neurons(rho=rho, half=half)))
    found = re.findall(r"(?:few|many|fixed|changing) (?:neurons|ones): ([^(]+) \(ρ", caption)
    assert found == answers
    assert "n = 14 documents" in caption
    assert "[SEP]" in caption


EXPECTED_RHO = [[-0.5, 0.5, 0.5], [0.5, -0.5, -0.5]]


@pytest.mark.parametrize(
    ("untrained", "half", "answer"),
    [
        (EXPECTED_RHO, 0.02, "no more than without training"),
        ([[0.0] * 3] * 2, 0.02, "yes"),  # 0.5 away, where both intervals take 0.2 and 0.02
        ([[0.0] * 3] * 2, 0.47, "no more than without training"),  # √(0.2² + 0.47²) > 0.5
        ([[0.0] * 3] * 2, 0.45, "yes"),
        ([[np.nan] * 3] * 2, 0.02, "yes"),  # a control that says nothing takes nothing away
    ],
)
def test_a_claim_that_networks_without_training_satisfy_too_is_not_confirmed(
    untrained, half, answer
):
    tree = make(make_neurons(rho=EXPECTED_RHO, half=0.2))
    of_control = make(make_neurons(rho=untrained, half=half))["neurons"]
    tree["control/shuffled/neurons"] = of_control.copy()
    caption = pictures()["neurons"].caption(tree)
    found = re.findall(r"(?:few|many|fixed|changing) (?:neurons|ones): ([^(]+) \(ρ", caption)
    assert found == [answer] * 6
    there = [fixed(rho, 2) for rho in np.array(untrained)[:, 0] if np.isfinite(rho)]
    assert re.findall(r"without training ([−\d.]+)\)", caption)[:2] == there


def test_what_no_head_attends_to_is_not_spoken_of():
    missing = [[np.nan] * 3] * 2
    assert "nothing can be said" in pictures()["neurons"].caption(make(make_neurons(rho=missing)))
    some = [[np.nan, np.nan, 0.5], [np.nan, np.nan, -0.5]]
    caption = pictures()["neurons"].caption(make(make_neurons(rho=some)))
    assert "Attention to [SEP]" not in caption
    assert "Attention to the previous token goes with many neurons: yes" in caption


def make_pairs():
    """As of pairs of sentences: head 6, of layer 2, is most a bag of words, by two neurons."""
    neurons, heads = make_neurons(), ("layer", "head")
    neurons = neurons.reindex(
        contrast=[*CONTRASTS, "own_segment"], target=[*TARGETS, "own_segment"]
    )
    bag = np.linspace(-0.1, 0.3, LAYERS * HEADS).reshape(LAYERS, HEADS)
    bag[1, 2] = 0.9
    _ends(neurons, "bag_of_words", heads, bag, 0.01)
    _ends(neurons, "own_segment_overlap", heads, 0.5 + bag / 4, 0.02)
    telling = np.full((LAYERS, HEADS, 4), np.nan)
    telling[..., 3] = 9 - 8 * bag
    _ends(neurons, "separation_effective", (*heads, "contrast"), telling, 0.1)
    separation = np.zeros((LAYERS, HEADS, 4, WIDTH))
    separation[1, 2, 3, [4, 9]] = -6, 2
    neurons["separation"] = ((*heads, "contrast", "neuron"), separation)
    for end, ends in (("", (-0.5, 0.3)), ("_ci_low", (-0.6, -0.1)), ("_ci_high", (-0.4, 0.5))):
        neurons[f"rank_correlation{end}"].loc[{"target": "own_segment"}] = list(ends)
    return neurons


def test_of_pairs_the_neurons_that_tell_the_sentences_apart_are_named():
    tree = make(make_pairs())
    caption = pictures()["neurons"].caption(tree)
    assert (
        "Even attention to the words of the own sentence goes with few neurons: yes "
        "(ρ = −0.50 [−0.60, −0.40]); with fixed ones: neither way"
    ) in caption
    assert (
        "Most a bag of words of its own sentence is L2·H3, 0.90 [0.89, 0.91]: 1.80 neurons tell "
        "the sentences apart there, most of all 4 (75 %), 9 (25 %), counted from 0."
    ) in caption
    number, overlap = draw(tree, "neurons").axes[-2:]
    bag = tree["neurons"]["bag_of_words"].values.ravel()
    for axes, values in ((number, 9 - 8 * bag), (overlap, 0.5 + bag / 4)):
        np.testing.assert_allclose(marks_of(axes, "blue"), np.stack([bag, values], -1))


def test_of_single_sentences_nothing_is_said_of_bags_of_words():
    assert "own sentence" not in pictures()["neurons"].caption(make())


def test_sources_are_the_sums_over_the_parts_of_the_query():
    tree = make()
    figure = draw(tree, "neuron_sources")
    split = tree["neurons"]["embedding_separation"].sum("part")
    for axes, contrast in zip(figure.axes, CONTRASTS, strict=True):
        for at, part in enumerate(PARTS[:3]):
            wanted = split.sel(contrast=contrast, part_other=part).values
            marks = marks_of(axes, "blue")
            here = marks[np.abs(marks[:, 1] - at) < 0.5]
            np.testing.assert_allclose(here[:, 0], wanted)
        assert [label.get_text() for label in axes.get_yticklabels()] == PARTS[:3]


def test_the_caption_of_sources_gives_shares_that_add_up():
    tree = make()
    caption = pictures()["neuron_sources"].caption(tree)
    size = np.abs(tree["neurons"]["embedding_separation"].sum("part").values[..., :3]).sum(0)
    shares = 100 * size / size.sum(-1, keepdims=True)  # [contrast, source]
    found = re.findall(r"word (\d+) %, position (\d+) %, segment (\d+) %", caption)
    np.testing.assert_array_equal(np.array(found, int), np.round(shares))


def test_contrasts_that_the_run_lacks_are_left_out():
    neurons = make_neurons()
    neurons["embedding_separation"].loc[{"contrast": ["sep", "same_segment"]}] = np.nan
    titles = [panel.title for panel in pictures()["neuron_sources"].panels(make(neurons))]
    assert titles == ["Next token from the rest"]
    neurons["embedding_separation"][:] = np.nan
    assert not pictures()["neuron_sources"].available(make(neurons))


def test_a_tokenizers_own_name_of_the_separator_is_used():
    tree = make(sep_token="$</s>$")
    assert "Attention to $</s>$ goes" in pictures()["neurons"].caption(tree)
    axes = draw(tree, "neurons").axes[3]
    assert axes.get_legend().get_texts()[0].get_text() == "$</s>$"
    assert texts(axes) == []
