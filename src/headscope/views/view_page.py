"""Make the page of one captured example: its data, and one self-contained offline HTML file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headscope.core.head_names import Head
from headscope.core.wording import grid_size
from headscope.page.shell import island, render_page, script_of, style_of, template
from headscope.views import packed_arrays
from headscope.views.captured_example import ExampleMaps, NamedMaps, StackMaps, TokenSide
from headscope.views.packed_arrays import (
    LEVELS,
    Detail,
    Pack,
    coded_maps,
    largest_of,
    packed,
    plainest,
    short,
)

VERSION = 2
FEW_TOKENS = 128
SMALL, LARGE = 900_000, 11_600_000  # characters of data: up to FEW_TOKENS tokens, and beyond
LEAST_HEADS = 4  # with exact weights and vectors, whatever they take, up to FEW_TOKENS


def payload(
    shown: ExampleMaps,
    *,
    labels: Sequence[Sequence[Sequence[str]]] | None = None,
    detail: Detail = "auto",
    head: Head | None = None,
    pack: Pack = packed,
) -> dict[str, Any]:
    """Everything that the page draws, as plain values for JSON.

    labels  [stack][layer][head] what a head does, '' where nothing is telling
    detail  heads (layer, head) that come with exact weights and vectors; "all", "none", or "auto":
            as many as fit, those with the largest weights between ordinary tokens first
    head    (layer, head) of the first stack that the page opens with; None: with all heads
    pack    of arrays, what stands for them; by default they are compressed text
    raises  InputError for a head that is not there
    """
    tokens = max(len(side) for side in shown.sides)
    room, least = (SMALL, LEAST_HEADS) if tokens <= FEW_TOKENS else (LARGE, 0)
    levels = packed_arrays.levels_for(sum(stack.attention.size for stack in shown.stacks))
    coded = [_measures(stack, levels, pack) for stack in shown.stacks]
    taken = sum(len(text) for measures in coded for one in measures for text in one.get("data", ()))
    left = max(room - taken, 0) // len(shown.stacks)
    stacks, among, sinks = [], shown.sides_for_views, shown.sinks
    for place, (stack, measures) in enumerate(zip(shown.stacks, coded, strict=True)):
        layers, heads = stack.attention.shape[:2]
        names = labels[place] if labels else [[""] * heads] * layers
        chosen = packed_arrays.detail_of(
            stack, among, detail, room=left, least=least, opened=None if place else head
        )
        stacks.append(_stack(stack, names, measures, chosen))
    exact = any(stack["detail"]["heads"] for stack in stacks)
    counted = shown.stacks[0].names
    note = "" if counted.first else f"Layers and heads count {counted.counted}."
    layer, place = head or plainest(shown.stacks[0], among)[0]
    return {
        "version": VERSION,
        "title": shown.text,
        "model": {"name": Path(shown.model).name},
        "countsFrom": counted.first,
        "precision": _precision(levels, detail=exact),
        "left_out": " ".join(filter(None, [shown.left_out, note])),
        "sides": [_side(side, sink=place in sinks) for place, side in enumerate(among)],
        "stacks": stacks,
        # The page opens on all heads, with the plainest of the first stack chosen; on the
        # difference, where there is one.
        "start": {
            "view": "head" if head else "model",
            "stack": 0,
            "layer": layer,
            "heads": [place],
            "query": None,
            "measure": _opening_measure(shown.stacks[0], coded[0]),
        },
    }


def _stack(
    stack: StackMaps,
    labels: Sequence[Sequence[str]],
    measures: list[dict[str, Any]],
    detail: dict[str, Any],
) -> dict[str, Any]:
    layers, heads = stack.attention.shape[:2]
    return {
        "name": stack.name,
        "label": stack.name.capitalize(),
        "layers": layers,
        "heads": heads,
        "causal": stack.causal,
        "queries": stack.queries,
        "keys": stack.keys,
        "labels": [list(row) for row in labels],
        "measures": measures,
        "detail": detail,
        **({"numbers": stack.numbers} if stack.numbers else {}),
    }


def _side(side: TokenSide, *, sink: bool) -> dict[str, Any]:
    return {
        "name": side.name,
        "tokens": list(side.tokens),
        "special": side.special.tolist(),
        "segment": side.segment.tolist(),
        "word": side.word.tolist(),
        "boundary": side.boundary,
        "written": list(side.written),
        **({"pieces": side.pieces} if side.pieces != side.tokens else {}),
        **({"sink": True} if sink else {}),
    }


def _opening_measure(stack: StackMaps, measures: list[dict[str, Any]]) -> int:
    return 0 if stack.versus is None else len(measures) - 1  # the difference stands last


def _precision(levels: float, *, detail: bool) -> str:
    """How exact the weights are: the root of 0.25 is ½, so the error is that of one step."""
    exact = "; the heads of the neuron view have 5 digits" if detail else ""
    return f"Weights on this page are rounded: 0.25 may be off by {1 / (2 * levels):.1g}{exact}."


def _measures(stack: StackMaps, levels: float, pack: Pack) -> list[dict[str, Any]]:
    attention = NamedMaps("attention", "attention α", "probability", stack.attention)
    measures = [_stored(attention, stack, levels, pack)]
    if stack.value_norm is not None and (weighted := stack.weighted_norm) is not None:
        norm, norm_scale = packed_arrays.coded_norms(stack.value_norm, pack=pack)
        measures.append(
            {
                "name": "weighted_norm",
                "label": "weighted norm ‖αf(x)‖",
                "unit": "1",
                "signed": False,
                "scale": short(largest_of(weighted)),
                "norm": norm,
                "norm_scale": short(norm_scale),
            }
        )
    measures += [_stored(maps, stack, levels, pack) for maps in stack.measures]
    if stack.versus is not None:
        other = stack.versus
        largest = float(np.abs(stack.attention - other.maps).max()) or 1.0
        measures.append(_stored(other, stack, levels, pack))
        measures.append(
            {
                "name": "difference",
                "label": f"difference from {other.label}",
                "unit": other.unit,
                "signed": True,
                "scale": largest,
                "minuend": 0,
                "subtrahend": len(measures) - 1,
            }
        )
    return measures


def _stored(measure: NamedMaps, stack: StackMaps, levels: float, pack: Pack) -> dict[str, Any]:
    """Probabilities have the scale 1, other maps the largest value of each head.

    Maps of a whole layer are stored once, in the finest steps: they are few and small.
    """
    of_layer = measure.maps.shape[1] < stack.attention.shape[1]
    levels = LEVELS[0][0] if of_layer else levels
    whole = measure.unit == "probability" and not of_layer
    scale = 1.0 if whole else largest_of(measure.maps)
    return {
        "name": measure.name,
        "label": measure.label,
        "unit": measure.unit,
        "signed": False,
        **({"heads": 1} if of_layer else {}),
        "levels": levels,
        "scale": 1 if isinstance(scale, float) else short(scale),
        "data": coded_maps(measure.maps, scale=scale, levels=levels, pack=pack),
    }


# --- the page ----------------------------------------------------------------------------------

PACKAGE = "headscope.views"
# The files make one script: each may use only what stands before it.
SCRIPTS = (
    "core.js", "places.js", "values.js", "colours.js", "sentences.js", "choices.js", "heads.js",
    "thumbnails.js", "model.js", "lines.js", "head.js", "matrix.js", "neuron_data.js",
    "neuron_why.js", "neuron_paint.js", "neuron_all.js", "neuron.js", "figure_paper.js",
    "figure_lines.js", "figure_maps.js", "figure_neurons.js", "figure.js", "in_address.js",
    "page.js", "begin.js",
)  # fmt: skip
STYLES = ("view.css", "neuron.css", "figure.css")


def build_page(data: Mapping[str, Any]) -> bytes:
    """One HTML file with the views of an example; no request leaves it.

    data     JSON-ready, as `payload` makes it
    returns  UTF-8; tokens stand in it as data only, whatever characters they hold
    raises   ValueError for numbers that JSON does not have
    """
    page = render_page(
        template("view.html.j2", PACKAGE),
        style=page_style(),
        script=page_script(),
        title=data["title"],
        model=data["model"]["name"],
        about=_about(data),
        left_out=data["left_out"],
        precision=data.get("precision", ""),
        island=island(data),
    )
    # Half of a surrogate pair is no text; JSON writes it as an escape.
    return page.encode("utf-8", errors="backslashreplace")


def page_style() -> str:
    """The style, which is the same on every page."""
    return style_of(*STYLES, package=PACKAGE)


def page_script() -> str:
    """The script, which is the same on every page."""
    return script_of(SCRIPTS, PACKAGE)


def _about(data: Mapping[str, Any]) -> str:
    stacks, sides = data["stacks"], data["sides"]
    sizes = [
        grid_size(stack["layers"], stack["heads"]) + ", causal" * stack["causal"]
        for stack in stacks
    ]
    tokens = [f"{len(side['tokens'])} {side['name']} tokens".replace("  ", " ") for side in sides]
    if len(stacks) > 1:
        sizes = [f"{stack['label']} {size}" for stack, size in zip(stacks, sizes, strict=True)]
    return "; ".join([f"{data['model']['name']}, {sizes[0]}", *sizes[1:], " and ".join(tokens)])
