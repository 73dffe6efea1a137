"""Are the figures of a paper drawn of its runs, and grey, with what they need, where these lack?"""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from headscope.core.results import estimate
from headscope.page.svg import Styles, inline_panels
from headscope.papers.clark2019_gallery import first_and_last, layer_divergence
from headscope.papers.gallery import drawn_plates
from headscope.papers.paper_runs import in_memory
from headscope.papers.plates import Plate, PlatePanel, short
from headscope.papers.quantities import PaperRuns, Unmeasured
from headscope.papers.run_paper import MAKERS, papers
from headscope.run.store import Run

HOSTILE = '<img src=x onerror=alert(1)>&"'
PARTS = ("surface", "norms", "dependency", "coreference", "words")
GALLERIES = [name for name in ("clark2019", "kovaleva2019", "kobayashi2020") if name in papers()]


def drawn(panel):
    """The axes of a panel."""
    axes = Figure().subplots()
    panel.draw(axes)
    return axes


def plate(paper: str, place: str) -> Plate:
    return next(one for one in papers()[paper].plates if place in (one.place, one.title))


@pytest.mark.parametrize("name", GALLERIES)
def test_figures_have_names_of_their_own_runs_that_can_be_had_and_cells_of_claims(name):
    paper = papers()[name]
    keys = {claim.key for claim in paper.claims}
    assert len({one.id for one in paper.plates}) == len(paper.plates)
    for one in paper.plates:
        assert one.shows
        assert bool(one.panels) != bool(one.rows), one.title
        assert {panel.run.partition(":")[0] for panel in one.panels} <= set(MAKERS)
        assert {key for _, row in one.rows for key, *_ in row} <= keys
        assert all(len(row) == len(one.heads) - 1 for _, row in one.rows[:1])


@pytest.mark.parametrize("name", GALLERIES)
def test_every_panel_is_drawn_or_says_what_it_needs(name, whole):
    paper = papers()[name]
    runs = PaperRuns(dict.fromkeys(PARTS, Run(whole.tree, whole.manifest)))
    for one, plate_drawn in zip(paper.plates, drawn_plates(paper.plates, runs), strict=True):
        titles, lacking = [], set()
        for panel in one.panels:
            try:
                titles.append(panel.draw(runs.run(panel.run_of(runs))).title)
            except Unmeasured as error:
                titles.append(panel.title)
                lacking.add(str(error))
        assert list(plate_drawn.titles) == titles
        assert set(plate_drawn.needs) == lacking
        words = {word for needs in lacking for word in short(needs).split()[:2]}
        assert all(word in plate_drawn.drawn.svg.decode() for word in words)


def test_of_a_run_of_all_analyses_the_figures_are_drawn(whole):
    runs = PaperRuns(dict.fromkeys(PARTS, Run(whole.tree, whole.manifest)))
    for name, places in {
        "clark2019": ("Figure 1", "Figure 2", "Figure 4", "Figure 6", "Layer against layer"),
        "kobayashi2020": ("Figure 3", "‖f(x)‖ by category of token", "α against ‖f(x)‖"),
    }.items():
        some = [plate(name, place) for place in places]
        assert [(one.plate.place, one.needs) for one in drawn_plates(some, runs)] == [
            (one.place, []) for one in some
        ]


def test_without_runs_all_panels_are_grey():
    plates = [one for name in GALLERIES for one in papers()[name].plates]
    made = drawn_plates(plates, PaperRuns({}, absent={"norms": "needs norms: https://x.example"}))
    assert all(one.needs and not one.runs for one in made if one.plate.panels)
    assert short("needs norms: https://x.example") == "needs norms"


def test_a_head_of_figure_1_is_the_one_with_most_and_its_share_stands_above_it(whole):
    run = PaperRuns({"surface": Run(whole.tree, whole.manifest)}).run("surface")
    share = estimate(whole.tree["surface"].dataset, "attention", target="sep").value
    layer, head = np.unravel_index(np.nanargmax(share), share.shape)
    panel = plate("clark2019", "Figure 1").panels[2].draw(run)
    assert panel.title == f"L{layer + 1}·H{head + 1}"
    said = {text.get_text() for text in drawn(panel).texts}
    assert f"attends to [SEP]: {100 * share.max():.0f} %" in said


def test_a_line_of_figure_2_is_the_mean_of_the_heads(whole):
    runs = PaperRuns({"surface": Run(whole.tree, whole.manifest)})
    panel = plate("clark2019", "Figure 2").panels[0]
    lines = drawn(panel.draw(runs.run("surface"))).lines
    shares = whole["surface"]["attention"].sel(target="sep").mean("head").values
    assert any(np.array_equal(line.get_ydata(), shares) for line in lines)


def test_figure_3_shows_the_norms_of_heads(whole):
    runs = PaperRuns({"norms": Run(whole.tree, whole.manifest)})
    panel = plate("kobayashi2020", "Figure 3").panels[1]
    marks = np.concatenate([x.get_ydata() for x in drawn(panel.draw(runs.run("norms"))).lines])
    norms = estimate(whole["norms"], "weighted_norm", category="other").value.ravel()
    assert set(norms.tolist()) <= set(marks.tolist())


def test_heads_of_two_layers_differ_by_the_mean_of_their_pairs_but_of_none_with_itself(whole):
    run = PaperRuns({"surface": Run(whole.tree, whole.manifest)}).run("surface")
    values, js = layer_divergence(run), whole["divergence"]["js"].values
    heads = whole["entropy"].sizes["head"]
    assert values[0, 1] == pytest.approx(js[:heads, heads : 2 * heads].mean())
    own = js[:heads, :heads]
    assert values[0, 0] == pytest.approx(own[~np.eye(heads, dtype=bool)].mean())


@pytest.mark.parametrize(
    ("far", "spread", "words"),
    [(0.4, 0.001, "No: "), (0.05, 0.001, "Yes: "), (0.2, 0.001, "Cannot tell"), (0.4, 0.5, "Cann")],
)
def test_first_and_last_layers_are_held_against_neighbours_by_intervals(far, spread, words):
    moves = np.linspace(-spread, spread, 12)
    draws = np.array([[0.1, 0.2, 0.3, far], *([0.1, 0.2, 0.3, far + by] for by in moves)])
    gaps = xr.DataArray(draws[0], dims="layer_gap")
    kept = xr.DataArray(draws, dims=("replicate", "layer_gap"))
    data = xr.Dataset({"js_by_layer_gap": gaps, "js_by_layer_gap_draws": kept})
    runs = PaperRuns({"surface": Run(xr.DataTree.from_dict({"divergence": data}), {})})
    assert words in first_and_last(runs)


def test_heat_maps_of_tasks_have_one_scale():
    cosines = {"mrpc": 0.9, "rte": 0.5}
    runs = {}
    for task, cosine in cosines.items():
        run = in_memory("similarity")
        run.tree["similarity"] = xr.Dataset({"cosine": (("layer", "head"), [[cosine, 1.0]])})
        runs[f"compare:{task}"] = run
    paper_runs, figure = PaperRuns(runs), plate("kovaleva2019", "Figure 5")
    panels = {panel.run: panel for panel in figure.panels}
    texts = [
        {
            text.get_text()
            for box in drawn(panels[name].draw(paper_runs.run(name))).artists
            for text in box.findobj(lambda x: hasattr(x, "get_text"))
        }
        for name in runs
    ]
    assert texts[0] == texts[1]
    assert any("0.5" in text for text in texts[0])


def with_typical(kind, score, *, size):
    """A run with one head, whose one typical map is of a class and of so many tokens."""
    run, dims = in_memory("patterns"), ("layer", "head", "rank")
    run.tree["patterns"] = xr.Dataset(
        {
            "typical": ((*dims, "query", "key"), np.full((1, 1, 1, size, size), 0.1)),
            "typical_score": (dims, np.full((1, 1, 1), score)),
        },
        {"typical_class": (dims, np.full((1, 1, 1), kind))},
    )
    return run


def test_a_class_that_single_sentences_lack_is_shown_on_examples_of_a_task():
    runs = {
        "words": with_typical("vertical", 0.6, size=3),
        "compare:rte": with_typical("block", 0.7, size=4),
        "compare:qnli": with_typical("block", 0.9, size=5),
        "compare:mrpc": in_memory("similarity"),
    }
    panels = {one.title: one for one in plate("kovaleva2019", "Figure 1").panels}
    run = PaperRuns(runs).run("words")
    for title, size in (("Vertical", 3), ("Block", 5)):
        assert drawn(panels[title].draw(run)).get_xlabel() == f"L1·H1, {size} tokens"
    with pytest.raises(Unmeasured, match="no head has one"):
        panels["Diagonal"].draw(run)


def sentence_of_frames(ends):
    """A run whose second head scores most, with one stored sentence and a mark of its own there."""
    run, size = in_memory("frames"), len(ends)
    maps = np.zeros((1, 1, 2, size, size))
    maps[0, 0, 1, 1, 2] = 0.8
    run.tree["frames"] = xr.Dataset({"score": (("layer", "head"), [[0.1, 0.3]])})
    places = ("input", "token")
    run.tree["examples"] = xr.Dataset(
        {"token_attention": (("input", "layer", "head", "token", "token_other"), maps)},
        {
            "token_frame": (places, [ends]),
            "token_count": (places, np.ones((1, size), int)),
            "token_text": (places, [[f"w{at}" for at in range(size)]]),
            "special": (places, np.zeros((1, size), int)),
        },
    )
    return PaperRuns({"frames": run}).run("frames")


def test_figure_4_frames_the_pairs_of_element_and_target_in_the_map_of_the_best_head():
    best, _, second = plate("kovaleva2019", "Figure 4").panels
    run = sentence_of_frames([0, 1, 2, 0, 1])
    panel = best.draw(run)
    assert panel.title == "L1·H2 on one sentence"
    assert second.draw(run).title == "L1·H1 on one sentence"
    axes = drawn(panel)
    framed = {one.get_xy() for one in axes.patches if isinstance(one, Rectangle)}
    assert framed == {(1.5, 0.5), (1.5, 3.5)}  # keys across, queries down
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"w{at}" for at in range(5)]
    with pytest.raises(Unmeasured, match="a sentence of 12 to 40 tokens with a frame"):
        best.draw(sentence_of_frames([0, 1, 1, 0, 0]))


def test_names_in_what_is_needed_stay_text():
    panel = PlatePanel("A", "surface", lambda run: pytest.fail("there is no run"))
    one = Plate("Figure 1", "x", "y", panels=(panel,))
    (made,) = drawn_plates([one], PaperRuns({}, absent={"surface": f"needs {HOSTILE}"}))
    markup = made.drawn.svg.decode() + inline_panels(made.drawn, Styles(), prefix="x")[0]
    assert "<img" not in markup
    assert re.search("&lt;img", markup)
