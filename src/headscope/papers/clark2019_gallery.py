"""Clark et al. (2019): the figures and tables of the paper, in its order and layout."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from headscope.analyses.dependency.relation_heads import (
    DIRECTIONS,
    ParsedSentence,
    parsed_sentences,
)
from headscope.claims.caption_words import clipped
from headscope.claims.head_attention import NEXT
from headscope.claims.verdict import above, below
from headscope.core.accumulators import finite_mean
from headscope.core.results import Floats, at, best_places, shape
from headscope.core.wording import fixed, percent, with_ends
from headscope.draw import marks
from headscope.draw.panel import Panel
from headscope.draw.style import DOUBLE, color
from headscope.papers import clark2019_language as language
from headscope.papers import quantities
from headscope.papers.plates import Plate, PlateCell, PlatePanel, shown
from headscope.papers.quantities import PaperRun, PaperRuns, Unmeasured

ROW, UNDER = 8.5, 1.5  # points between the tokens of a column; rows for the line above them
LONGEST, SIDE = 12, 0.36  # letters of a token; where the lines begin, of the width of a map
FAINTEST = 0.03  # weights below are not drawn
MAPS = 2  # sentences of a panel of Figure 5
Words = tuple[Sequence[str], Floats, set[int]]  # tokens, weights [query, key], the red ones

# --- Figures 1 and 5: lines between tokens -----------------------------------------------------


def _lines_panel(title: str, under: str, maps: Sequence[Words], columns: int) -> Panel:
    """Maps side by side: tokens left and right, the darker the line the larger the weight."""
    rows = max(len(words) for words, *_ in maps) + UNDER
    height = ROW * rows * columns / (72 * DOUBLE)
    return Panel(title, partial(_draw_maps, under, maps), height=height)


def _draw_maps(under: str, maps: Sequence[Words], axes: Axes) -> None:
    axes.text(0, 0, under, fontsize=6, va="center_baseline", color=color("muted"))
    for at_map, (words, weights, red) in enumerate(maps):
        left, right = at_map + SIDE, at_map + 1 - SIDE
        for row, word in enumerate(words):
            hue = color("vermillion" if row in red else "ink")
            for x, align in ((left - 0.02, "right"), (right + 0.02, "left")):
                look: dict[str, Any] = {"va": "center_baseline", "fontsize": 6, "color": hue}
                axes.text(x, UNDER + row, clipped(word, LONGEST), ha=align, **look)
        places = np.argwhere(np.nan_to_num(weights) >= FAINTEST)
        hues = ["vermillion" if {q, k} & red else "muted" for q, k in places.tolist()]
        seen = weights[tuple(places.T)].clip(max=1).tolist()
        lines = [[(left, UNDER + q), (right, UNDER + k)] for q, k in places.tolist()]
        shades = [to_rgba(color(hue), share) for hue, share in zip(hues, seen, strict=True)]
        axes.add_collection(LineCollection(lines, colors=shades, linewidths=1.1))
    axes.set_xlim(0, len(maps))
    axes.set_ylim(UNDER + max(len(words) for words, *_ in maps) - 0.4, -0.6)
    axes.set_axis_off()


def _example(what: str, target: str, head: tuple[int, int]) -> PlatePanel:
    """The map of one head on the stored input that is most of all words."""

    def draw(run: PaperRun) -> Panel:
        maps = run.results("examples")
        values = run.entropies("all")[0] if target == "entropy" else run.attention(target)[0]
        if target == "entropy" and not run.beside.own:  # the paper's is in the first layer
            values = np.where(np.arange(len(values))[:, None] == 0, values, np.nan)
        place = quantities.paper_head(run, values, head)
        value = float(values[place])
        number = f"{fixed(value, 2)} nats" if target == "entropy" else percent(value)
        texts = maps["token_text"].transpose("input", "token").values
        if not len(texts):
            raise Unmeasured("needs an example")
        row = _plainest(texts)
        size = int((texts[row] != "").sum())
        attention = maps["token_attention"].isel(input=row, layer=place[0], head=place[1])
        weights = attention.transpose("token", "token_other").values[:size, :size]
        words = (texts[row][:size].tolist(), np.asarray(weights, np.float64), set[int]())
        return _lines_panel(run.names.head(*place), f"{what}: {number}", [words], 4)

    name = f"Head {head[0] + 1}-{head[1] + 1} {what}"
    return PlatePanel(name, "surface", draw)


def _plainest(texts: npt.NDArray[np.str_]) -> int:
    """The row of texts [input, token] with a full stop and fewest tokens that are no words."""

    def signs(row: int) -> tuple[bool, int]:
        return "." not in texts[row], sum(not one.isalpha() for one in texts[row] if one)

    return min(range(len(texts)), key=signs)


FIGURE_1 = Plate(
    "Figure 1",
    "Heads with a pattern",
    "Four heads of different layers, each as a map of lines: the tokens of an input twice, left "
    "those that attend, right those that are attended to; the darker the line the larger the "
    "weight. Head 1-1 attends broadly, 3-1 to the next token, 8-7 to [SEP], 11-6 to periods.",
    "In another model, the heads that do so most, however little that is; the number is the mean "
    "over the corpus. An input that was chosen before the model ran.",
    (
        _example("attends broadly", "entropy", (0, 0)),
        _example("attends to next token", NEXT, (2, 0)),
        _example("attends to [SEP]", "sep", (7, 6)),
        _example("attends to periods", "punctuation", (10, 5)),
    ),
    4,
    1.3,
)
PHENOMENA = (  # relation, dependents, heads, the paper's head, its title there
    ("dobj", "direct objects", "verbs", (7, 9)),
    ("det", "determiners", "nouns", (7, 10)),
    ("poss", "possessives", "their nouns", (6, 5)),
    ("auxpass", "passive auxiliaries", "verbs", (3, 9)),
    ("pobj", "objects", "prepositions", (8, 5)),
)


def _phenomenon(relation: str, dependents: str, heads: str, head: tuple[int, int]) -> PlatePanel:
    def draw(run: PaperRun) -> Panel:
        results, name, _ = language.of_relation(run, relation)
        best = [float(results[f"best_{what}"]) for what in ("layer", "head")]
        if not np.isfinite(best).all():
            raise Unmeasured(f"needs words with the relation {name}")
        place = head if run.beside.own else (int(best[0]), int(best[1]))
        here = results.isel(layer=place[0], head=place[1])
        both = [quantities.stored(here, "accuracy", direction=way)[0] for way in DIRECTIONS]
        downward = int(np.nanargmax(both))
        ends = (heads, dependents) if downward != (name == "case") else (dependents, heads)
        sentences = _with_relation(run, name)
        maps = [
            (
                each.words,
                each.attention[place],
                {
                    arc.head if downward else arc.dependent
                    for arc in each.arcs
                    if arc.relation == name
                },
            )
            for each in sentences
        ]
        title = f"{run.names.head(*place)}: {ends[0]} attend to {ends[1]}"
        return _lines_panel(
            title, f"{percent(both[downward])} accuracy at the {name} relation", maps, 2
        )

    named = f"Head {head[0] + 1}-{head[1] + 1}: {dependents} and {heads}"
    return PlatePanel(named, "dependency", draw)


def _with_relation(run: PaperRun, relation: str) -> list[ParsedSentence]:
    """The stored sentences with most words of a relation, short ones first."""

    def count(sentence: ParsedSentence) -> int:
        return sum(arc.relation == relation for arc in sentence.arcs)

    there = [each for each in parsed_sentences(run.results("examples")) if count(each)]
    if not there:
        raise Unmeasured(f"needs an example sentence with the relation {relation}")
    return sorted(there, key=lambda each: (-count(each), len(each.words)))[:MAPS]


def _coreferent(run: PaperRun) -> Panel:
    results, examples = run.results("coreference"), run.results("examples")
    place = (4, 3) if run.beside.own else _best_of_mentions(results)
    accuracy = quantities.stored(
        results.isel(layer=place[0], head=place[1]), "accuracy", mention_type="all"
    )[0]
    maps = list[Words]()
    texts, entities = (
        examples[name].transpose("input", "token").values for name in ("token_text", "token_entity")
    )
    for row, (words, entity) in enumerate(zip(texts, entities, strict=True)):
        inside = np.flatnonzero((words != "") & ~examples["special"].values[row].astype(bool))
        named = entity[inside]
        again = {one for one in named.tolist() if one >= 0 and (named == one).sum() > 1}
        if again:
            chosen = examples["token_attention"].isel(input=row, layer=place[0], head=place[1])
            weights = chosen.transpose("token", "token_other").values[np.ix_(inside, inside)]
            red = {at for at, one in enumerate(named.tolist()) if one in again}
            maps.append((words[inside].tolist(), np.asarray(weights, np.float64), red))
    if not maps:
        raise Unmeasured("needs an example of at most 40 tokens with two mentions of one thing")
    shortest = sorted(maps, key=lambda one: len(one[0]))[:MAPS]
    title = f"{run.names.head(*place)}: coreferent mentions attend to antecedents"
    return _lines_panel(title, f"{percent(accuracy)} accuracy at linking mentions", shortest, 2)


def _best_of_mentions(results: xr.Dataset) -> tuple[int, int]:
    places = [float(best_places(results)[0]), float(results["best_head"].values[0])]
    if not np.isfinite(places).all():
        raise Unmeasured("needs mentions with an antecedent in the same input")
    return int(places[0]), int(places[1])


FIGURE_5 = Plate(
    "Figure 5",
    "Heads that correspond to linguistic phenomena",
    "Six heads in three rows of two, each on two sentences as lines between the words, darker for "
    "more weight; words of the phenomenon, and all attention from and to them, are red: 8-10 "
    "direct objects, 8-11 noun modifiers, 7-6 possessives, 4-10 passive auxiliaries, 9-6 "
    "prepositions, 5-4 coreferent mentions; below each name its accuracy.",
    "In another model, the best head for each. Attention between words; to special tokens it is "
    "not drawn. Sentences that were chosen before the model ran.",
    (
        *(_phenomenon(*one) for one in PHENOMENA),
        PlatePanel("Head 5-4: coreferent mentions", "coreference", _coreferent),
    ),
    2,
    0.5,
)


def _layer_divergence(run: PaperRun) -> Panel:
    values = layer_divergence(run)
    return Panel("Divergence of two layers’ heads", partial(_draw_layers, run, values), height=1.0)


def layer_divergence(run: PaperRun) -> Floats:
    """[layer, layer] the mean divergence of two heads, not of one with itself."""
    js = run.results("divergence")["js"].transpose("unit", "unit_other").values.astype(np.float64)
    layers, heads = shape(run.tree)
    apart = np.where(np.eye(len(js), dtype=bool), np.nan, js)
    return finite_mean(apart.reshape(layers, heads, layers, heads), (1, 3))  # [layer, layer]


def _draw_layers(run: PaperRun, values: Floats, axes: Axes) -> None:
    layers, top = len(values), float(np.nanmax(values))
    edges = np.arange(layers + 1, dtype=np.float64) - 0.5
    marks.cells(axes, edges, edges, values, top=top, gap=0.06)
    axes.invert_yaxis()
    axes.set_aspect("equal", anchor="N")
    named = marks.named_places(layers)
    for setter in (axes.set_xticks, axes.set_yticks):
        setter(named, [run.names.layer(place) for place in named])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("layer", loc="left")
    axes.set_ylabel("layer")
    marks.cell_key(axes, f"{top:.2f} nats")


def first_and_last(runs: PaperRuns) -> str:
    """Are the first and the last layer alike? Held against neighbouring layers, by intervals."""
    run = runs.run("surface")
    gaps = run.draws("divergence", "js_by_layer_gap")  # [replicate + 1, layers apart]
    if gaps.shape[1] < 3 or not np.isfinite(gaps[0, [1, -1]]).all():
        return ""
    near, far, more = (run.interval(x) for x in (gaps[:, 1], gaps[:, -1], gaps[:, -1] - gaps[:, 1]))
    numbers = (
        f"their heads differ by {with_ends(*at(far), 3)} nats, those of neighbouring layers by "
        f"{with_ends(*at(near), 3)} (difference {with_ends(*at(more), 3)})"
    )
    both = "the first and the last layer"
    words = "Cannot tell whether they are less alike, or more, than neighbouring layers"
    if above(*at(more)).holds:
        words = f"No: heads of {both} are less alike than those of neighbouring layers"
    elif below(*at(more)).holds:
        words = f"Yes: heads of {both} are even more alike than those of neighbouring layers"
    return f"Are {both} similar? {words}: {numbers}."


MORE = Plate(
    "",
    "Layer against layer",
    "Not in the paper, whose Figure 6 shows by eye that heads of a layer are often alike.",
    "Each cell: the mean Jensen–Shannon divergence of a head of one layer and one of another, from "
    "0 (page, alike); intervals over heads.",
    (PlatePanel("Divergence of two layers’ heads", "surface", _layer_divergence),),
    answer=first_and_last,
)


def _of_specials(at_panel: int, title: str, target: str) -> PlatePanel:
    """A panel of Figure 2, if the model has the token."""
    (panel,) = shown("surface", "surface_by_layer", (at_panel, title))

    def draw(run: PaperRun) -> Panel:
        if not np.isfinite(run.attention(target)[0]).any():
            raise Unmeasured("needs a model with special tokens")
        return panel.draw(run)

    return replace(panel, draw=draw)


def _table_1() -> tuple[tuple[str, tuple[PlateCell, ...]], ...]:
    rows = []
    for relation, head, _, baseline, offset, _, other in language.TABLE_1:
        own, name = f"table1-{relation}", "All" if relation == "all" else relation
        printed = f"{baseline} ({offset})" + f" / {other}" * bool(other)
        cells = ((own, "detail", head), (own, "number", ""), (f"{own}-offset", "both", printed))
        rows.append((name, cells))
    return tuple(rows)


GALLERY = (
    FIGURE_1,
    Plate(
        "Figure 2",
        "Attention to special tokens",
        "Two panels, one above the other; layers across, average attention from 0 to 1 upwards, a "
        "point for each head and a line for the mean of a layer. Above: to [CLS], to [SEP], to "
        "periods and commas. Below: to [SEP] from [SEP], and from other tokens.",
        "Whiskers: 95 % intervals over documents.",
        (
            _of_specials(1, "To special tokens", "sep"),
            _of_specials(2, "To [SEP], from [SEP] and from other tokens", "sep_from_sep"),
        ),
    ),
    Plate(
        "Figure 3",
        "Gradient-based importance of attention",
        "One panel; layers across, the average |∂L/∂α| upwards, a line each for attention to "
        "[SEP], to periods and commas, and to other tokens.",
        "[CLS] has a line of its own. Bands: 95 % intervals over documents.",
        shown("gradients", "gradients", (0, "Gradients, |∂loss/∂α|")),
    ),
    Plate(
        "Figure 4",
        "Entropies of attention distributions",
        "Two panels, one above the other; layers across, entropy in nats upwards, a point for each "
        "head, a dashed line for uniform attention. Above: from all tokens. Below: from [CLS].",
        "Whiskers: 95 % intervals over documents.",
        shown("surface", "entropy_by_layer", (0, "From all tokens"), (1, "From [CLS] only")),
        height=0.66,
    ),
    Plate(
        "Table 1",
        "The best head for each relation",
        "A row for each relation; columns: head, its accuracy, and the accuracy of the best fixed "
        "offset, with that offset in brackets.",
        "Small numbers are the paper’s.",
        heads=("Relation", "Head", "Accuracy", "Baseline"),
        rows=_table_1(),
    ),
    FIGURE_5,
    Plate(
        "Table 2",
        "Coreference accuracy",
        "Rows: nearest mention, head match, rule-based, neural coreference, head 5-4; columns: all "
        "mentions, pronouns, proper nouns, nominals.",
        "Small numbers are the paper’s.",
        heads=("Model", "All", "Pronoun", "Proper", "Nominal"),
        rows=tuple(
            (name, tuple((f"table2-{system}-{kind}", "number", "") for kind in language.KINDS))
            if system
            else (name, (("table2-neural", "number", ""),))
            for name, system in (
                ("Nearest", "nearest"),
                ("Head match", "head_match"),
                ("Rule-based", "rule_based"),
                ("Neural", ""),
                ("Best head (5-4)", "head"),
            )
        ),
    ),
    Plate(
        "Table 3",
        "Probes of heads in combination",
        "A row for each probe; one column, UAS: structural probe, right-branching, distances + "
        "GloVe, random init + GloVe, attention, attention + GloVe.",
        "Small numbers are the paper’s.",
        heads=("Model", "UAS"),
        rows=tuple(
            (name, ((f"table3-{key}", "number", ""),))
            for name, key in (
                ("Structural probe (UUAS)", "structural"),
                ("Right-branching", "right_branching"),
                ("Distances + words", "distances_words"),
                ("Random init + words", "random_words"),
                ("Attention", "attention"),
                ("Attention + words", "attention_words"),
            )
        ),
    ),
    Plate(
        "Figure 6",
        "Heads embedded in two dimensions",
        "Two panels of the same map, a point for each head, near where their attention is alike "
        "by Jensen–Shannon divergence: coloured by behaviour, and coloured by layer.",
        "",
        shown("surface", "divergence_map", (1, "By behaviour"), (0, "By layer")),
        columns=2,
        height=0.95,
    ),
    MORE,
)
