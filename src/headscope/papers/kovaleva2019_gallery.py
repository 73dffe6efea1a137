"""Kovaleva et al. (2019): the figures and tables of the paper, in its order and layout."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from headscope.analyses.features import CLS_QUESTION
from headscope.analyses.features.figure import cls_panels, cls_top
from headscope.analyses.patterns import CLASSES
from headscope.analyses.patterns.figure import draw_bars
from headscope.claims.caption_words import clipped
from headscope.claims.reading import Reading
from headscope.core.display import printable
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, estimate, largest_first
from headscope.draw import marks
from headscope.draw.head_grid import grid_panel, largest
from headscope.draw.panel import Panel
from headscope.draw.rows import rows_height
from headscope.draw.style import DOUBLE, color
from headscope.draw.token_axes import set_tokens
from headscope.experiments.comparison.findings import map_change
from headscope.papers.kovaleva2019_tasks import COLUMNS, NAMES, TABLE_1, TASKS
from headscope.papers.plates import (
    Plate,
    PlateCell,
    PlatePanel,
    all_of,
    by_task,
    panels_of,
    short,
    shown,
)
from headscope.papers.quantities import PaperRun, Unmeasured

SHADE = 0.75  # of the scale of a map: its largest weight is drawn as dark
LETTERS = 9  # of a token beside a map
COMPARED = tuple(f"compare:{task}" for task in TASKS)  # runs on the examples of tasks

# --- Figures 1 and 2 ---------------------------------------------------------------------------


def _typical(name: str, title: str) -> PlatePanel:
    """The map that the classifier is surest of, of all heads' typical ones of a class."""

    def draw(run: PaperRun) -> Panel:
        every = (run.beside.run(other) for other in ("words", *COMPARED) if other in run.beside)
        known = [one for each in every if (one := _surest(each, name))]
        if not known:
            raise Unmeasured("needs a map of this class: no head has one among its typical maps")
        _, label, maps = max(known, key=lambda one: one[0])
        size = int(np.isfinite(np.diag(maps)).sum())
        words = f"{label}, {size} tokens"
        return Panel(title, partial(_draw_map, maps[:size, :size], words), height=1.0, beside=0.25)

    return PlatePanel(title, "words", draw, COMPARED)


def _surest(run: PaperRun, name: str) -> tuple[float, str, Floats] | None:
    """The highest score of a class’s typical maps in one run, its head, and the map."""
    if "patterns" not in run or "typical" not in run["patterns"]:
        return None
    known, order = run["patterns"], ("layer", "head", "rank")
    scores, kinds = (
        known[f"typical_{what}"].transpose(*order).values for what in ("score", "class")
    )
    scores = np.where(kinds == name, scores, np.nan)
    if not np.isfinite(scores).any():
        return None
    layer, head, rank = map(int, np.unravel_index(int(np.nanargmax(scores)), scores.shape))
    maps = known["typical"].transpose(*order, "query", "key").values[layer, head, rank]
    return float(scores[layer, head, rank]), run.names.head(layer, head), maps


def _draw_map(weights: Floats, label: str, axes: Axes) -> None:
    edges = np.arange(len(weights) + 1, dtype=np.float64) - 0.5
    marks.cells(axes, edges, edges, weights, top=SHADE * float(weights.max()))
    axes.invert_yaxis()
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set(visible=True, color=color("rule"))
    axes.set_xlabel(label, loc="left", fontsize=6.5)


def _classes(run: PaperRun) -> Panel:
    return Panel("Classes of maps", partial(_draw_classes, run), height=0.42)


def _draw_classes(run: PaperRun, axes: Axes) -> None:
    """A bar for each task; grey where it is not known, with what it needs."""
    beside, shares = run.beside, np.full((len(TASKS), len(CLASSES)), np.nan)
    needs = {}
    for row, task in enumerate(TASKS):
        try:
            shares[row] = beside.run(f"compare:{task}").results("patterns")["model_share"].values
        except Unmeasured as error:
            needs[row] = short(str(error))
    draw_bars([("", NAMES[task]) for task in TASKS], shares, axes)
    for row, words in needs.items():
        axes.bar(row, 1, 0.78, color=color("rule"), alpha=0.5, lw=0)
        look: dict[str, Any] = {"ha": "center", "va": "center", "rotation": 90, "fontsize": 5}
        axes.text(row, 0.5, printable(words), color=color("muted"), **look)


# --- Figure 4 ------------------------------------------------------------------------------------


def _of_sentence(rank: int) -> PlatePanel:
    """The map of the best head, or the second, on a stored sentence with a frame."""

    def draw(run: PaperRun) -> Panel:
        place = largest_first(run.results("frames")["score"].values)[rank]
        maps = run.results("examples")
        ends = maps["token_frame"].transpose("input", "token").values
        there = np.flatnonzero((ends == 1).any(1) & (ends == 2).any(1))
        if not there.size:
            raise Unmeasured("needs a sentence of 12 to 40 tokens with a frame")
        row = min(there.tolist(), key=lambda at: (maps["token_count"].values[at] > 0).sum())
        here = maps.isel(input=row)
        size = int((here["token_count"].values > 0).sum())
        attention = here["token_attention"].isel(layer=place[0], head=place[1])
        weights = attention.transpose("token", "token_other").values[:size, :size]
        draw = partial(_draw_sentence, here.isel(token=slice(size)), weights.astype(np.float64))
        return Panel(f"{run.names.head(*place)} on one sentence", draw, height=1.0, beside=0.3)

    return PlatePanel(("Best", "Second best")[rank] + " head on one sentence", "frames", draw)


def _draw_sentence(here: xr.Dataset, weights: Floats, axes: Axes) -> None:
    """A map with its tokens; frames from the core elements to the word that evokes the frame."""
    _draw_map(weights, "", axes)
    words = [clipped(str(word), LETTERS) for word in here["token_text"].values]
    special = here["special"].values > 0
    set_tokens(axes, (words, words), (special, special), size=5.0, pad=1.5)
    queries, keys = (np.flatnonzero(here["token_frame"].values == end) for end in (1, 2))
    look: dict[str, Any] = {"fill": False, "ec": color("vermillion"), "lw": 1.0, "zorder": 3}
    for query in queries.tolist():
        for key in keys.tolist():
            axes.add_patch(Rectangle((key - 0.5, query - 0.5), 1, 1, **look))


# --- Figures 5 and 6: a heat map for each task, on one scale -------------------------------------


def _change(run: PaperRun) -> Estimate:
    return map_change(run.results("similarity"), "cosine")


def _to(target: str) -> Callable[[PaperRun], Estimate]:
    def read(run: PaperRun) -> Estimate:
        parts = estimate(run.results("surface"), "attention", target=target)
        if not np.isfinite(parts.value).any():
            raise Unmeasured(f"needs a model with the token {target}")
        return parts

    return read


def _scaled(number: Callable[[PaperRun], Estimate]) -> Callable[[PaperRun, str], Panel]:
    """The heat map of a number of one task, on the scale of all tasks that there are."""

    def draw(run: PaperRun, title: str) -> Panel:
        top = max(largest(parts.value) for parts in all_of(run, "compare", number))
        return grid_panel(title, number(run).value, run.names, top=top)

    return draw


def _small(number: Callable[[PaperRun], Estimate]) -> Callable[[PaperRun, str], Panel]:
    """The same without the names of axes, which have no room in a row of seven."""

    def draw(run: PaperRun, title: str) -> Panel:
        panel = _scaled(number)(run, title.replace(", at chance", "*"))

        def bare(axes: Axes) -> None:
            panel.draw(axes)
            axes.set(ylabel="", xlabel=" ")  # the key keeps its room

        return replace(panel, draw=bare, beside=0.6)

    return draw


# --- Figure 7 ------------------------------------------------------------------------------------


def _last_cls(run: PaperRun, title: str) -> Panel:
    top = max(all_of(run, "told", lambda one: cls_top(one.results("cls_attention"))))
    panels = cls_panels(Reading(run.tree, CLS_QUESTION), top) if "cls_attention" in run else []
    if not panels:
        raise Unmeasured("needs words with tags: treebank")
    kinds = run.results("cls_attention").sizes["feature"]
    return replace(panels[0], title=title, height=rows_height(kinds, width=DOUBLE / 3))


def _without_head(run: PaperRun, title: str) -> Panel:
    panel = panels_of(run, "ablation")[0]

    def draw(axes: Axes) -> None:
        panel.draw(axes)
        axes.set_xlabel(" ")  # the key, which has two sides, takes its room

    return replace(panel, title=title, draw=draw)


def _without_layer(run: PaperRun, title: str) -> Panel:
    return replace(panels_of(run, "ablation")[1], title=title)


def _table_1() -> tuple[tuple[str, tuple[PlateCell, ...]], ...]:
    return tuple(
        (
            f"{NAMES[task]}, {words}",
            tuple((f"table1-{task}-{metric}-{key}", "number", "") for key, *_ in COLUMNS),
        )
        for task, metric, words, _ in TABLE_1
    )


HERE = (
    "Grey: a task without data or checkpoint; at chance: its checkpoint is not shown to beat the "
    "best constant answer, so that the panel says nothing of the task."
)
GALLERY = (
    Plate(
        "Figure 1",
        "Typical classes of self-attention maps",
        "Five maps in a row, both axes the tokens of an input, darker for more weight: vertical, "
        "diagonal, vertical + diagonal, block, heterogeneous.",
        "Of each class the map that the classifier is surest of, on sentences of the treebank or "
        "examples of a task, from 0 (page) to its largest. Blocks need inputs of two sentences.",
        tuple(_typical(one.name, one.title) for one in CLASSES),
        5,
        1.0,
    ),
    Plate(
        "Figure 2",
        "Shares of the five classes, by task",
        "A bar for each of seven tasks, cut into the shares of the five classes, to 100 %.",
        "The classes are headscope’s own. Grey: a task without data or checkpoint.",
        (
            PlatePanel(
                "Classes of maps",
                COMPARED[0],
                _classes,
                COMPARED[1:],
            ),
        ),
        2,
        0.42,
    ),
    Plate(
        "Figure 4",
        "Heads that encode semantic links",
        "In the middle a heat map, layers down and heads across, of the attention between "
        "annotated words of FrameNet, averaged over sentences, in which two heads stand out; "
        "beside it the maps of these two heads on one sentence. (Figure 3 there is an annotated "
        "sentence.)",
        "Framed: from a core element to the word that evokes the frame. A sentence that was chosen "
        "before the model ran; from 0 (page) to the largest.",
        (
            _of_sentence(0),
            *shown("frames", "frames", (1, "Frame element to target")),
            _of_sentence(1),
        ),
        3,
        1.0,
    ),
    Plate(
        "Table 1",
        "Tasks by initialisation",
        "A row for each task and metric; columns: pre-trained without fine-tuning, fine-tuned from "
        "random weights, fine-tuned from the pre-trained ones.",
        "Small numbers are the paper’s.",
        heads=("Task", "Pre-trained", "Random, fine-tuned", "Pre-trained, fine-tuned"),
        rows=_table_1(),
    ),
    Plate(
        "Figure 5",
        "What fine-tuning changes in each head",
        "A heat map for each of seven tasks, layers down and heads across: cosine similarity of a "
        "head’s maps before and after fine-tuning, darker for a greater difference.",
        f"1 − cosine, all tasks on one scale, which ends at the largest. {HERE}",
        by_task(TASKS, NAMES, "compare", _scaled(_change)),
        4,
        1.0,
    ),
    Plate(
        "Figure 6",
        "Attention to [SEP] and to [CLS], by task",
        "Two rows of seven heat maps, layers down and heads across: average attention to [SEP] "
        "above, to [CLS] below, darker for more.",
        f"Of the fine-tuned models; each row on one scale; *: at chance. {HERE}",
        tuple(
            panel
            for target in ("sep", "cls")
            for panel in by_task(
                TASKS,
                NAMES,
                "compare",
                _small(_to(target)),
                f"[{target.upper()}], {{}}",
            )
        ),
        7,
        1.0,
    ),
    Plate(
        "Figure 7",
        "What [CLS] attends to in the last layer, by task",
        "For each task, heads across and kinds of tokens down: attention from [CLS] in the last "
        "layer to nouns, verbs, pronouns, subjects, objects, negation, punctuation and [SEP], on a "
        "scale from 0 to 0.5.",
        f"On the treebank’s sentences, all tasks on one scale. {HERE}",
        by_task(TASKS, NAMES, "told", _last_cls),
        3,
        0.9,
    ),
    Plate(
        "Figure 8",
        "The score without one head",
        "A heat map for each task, layers down and heads across: the score with that head "
        "disabled, darker for better, and a line at the baseline in the key.",
        f"The change from the baseline: blue better, vermillion worse, page: the baseline. {HERE}",
        by_task(TASKS, NAMES, "ablate", _without_head),
        3,
        1.0,
    ),
    Plate(
        "Figure 9",
        "The score without one layer",
        "For each task the score with all heads of one layer disabled, layer by layer, and the "
        "baseline.",
        f"Bars begin at the baseline; whiskers: 95 % intervals over examples. {HERE}",
        by_task(TASKS, NAMES, "ablate", _without_layer),
        3,
        0.72,
    ),
)
