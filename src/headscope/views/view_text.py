"""View the attention in one text: in a notebook, as a file, or as a figure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.accumulators import Float64
from headscope.core.head_names import Head
from headscope.core.wording import grid_size
from headscope.errors import InputError
from headscope.page.shell import asset, write_page
from headscope.run.store import Run
from headscope.views.captured_example import ExampleMaps, StackMaps
from headscope.views.example_labels import stack_labels
from headscope.views.packed_arrays import Detail, plainest
from headscope.views.view_page import build_page, payload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.model.model import Model

HEIGHT = 760  # pixels of the frame in a notebook
Labels = Sequence[Sequence[Sequence[str]]]


def frame_of(page: bytes, title: str) -> str:
    """Markup of a frame that holds a page, for notebooks: pages do not disturb each other."""
    own = {"sandbox": "allow-scripts allow-downloads", "loading": "lazy"}
    return notebook_frame(title, {"srcdoc": page.decode("utf-8"), **own})


def notebook_frame(title: str, own: Mapping[str, str], *, height: int = HEIGHT) -> str:
    """Markup of a frame whose page is dark where the notebook is; all values are escaped.

    own     attributes that say what it shows
    height  in pixels
    """
    more = {"title": title, **own, "style": f"width:100%;height:{height}px;border:0"}
    words = " ".join(f'{name}="{escape(value, quote=True)}"' for name, value in more.items())
    script = asset("frame.js", "headscope.views")
    return f'<iframe class="headscope" {words}></iframe><script>{script}</script>'


@dataclass(frozen=True)
class View:
    """The model, head, neuron and matrix views of one example; a notebook displays them.

    shown   the example with its maps
    labels  [stack][layer][head] labels of the heads; '' for none
    detail  the heads with exact weights and vectors, see `view`; layers by their places
    head    the head that the page opens with, likewise; None: all heads
    """

    shown: ExampleMaps
    labels: Labels
    detail: Detail = "auto"
    head: Head | None = None

    @cached_property
    def page(self) -> bytes:
        """One self-contained offline HTML page."""
        data = payload(self.shown, labels=self.labels, detail=self.detail, head=self.head)
        return build_page(data)

    def save(self, path: str | Path) -> Path:
        """Writes the page, whole or not at all; returns its path.

        raises  InputError for the name of a picture
        """
        return write_page(Path(path), self.page)

    def picture(
        self,
        *heads: Head | str,
        kind: str = "lines",
        measure: str = "attention",
        stack: str | None = None,
        query: int | None = None,
        columns: int | None = None,
    ) -> Figure:
        """A figure for a paper of what these heads do; its `savefig` writes it.

        heads    (layer, head), from 0, the model's own numbers, or names: "L3H9", "2.8"; without
                 any, the head of the largest weights between tokens
        kind     "lines" of several heads; "matrix" or "neurons" of one
        measure  "attention", "weighted_norm", or the name of a further measure
        stack    "encoder", "decoder" or "cross", where there are several; None: the first
        query    neurons: the token that looks, from 0; None: the ordinary one with the largest
                 weight
        columns  of a journal: 1 or 2; None: what suits the kind
        raises   InputError for what is not there: a head, measure, stack or token, or vectors; and
                 for more tokens than fit
        """
        from headscope.views.figure import figure_of

        place, seen = self._stack(stack)
        chosen = [*map(seen.names.read, heads)]
        return figure_of(
            seen,
            self.shown.sides,
            chosen or plainest(seen, self.shown.sides)[:1],
            kind=kind,
            measure=measure,
            query=query,
            columns=columns,
            labels=self.labels[place],
        )

    def _stack(self, name: str | None) -> tuple[int, StackMaps]:
        names = [stack.name for stack in self.shown.stacks]
        if name is not None and name not in names:
            raise InputError(f"found the stack {name!r}; wanted one of {', '.join(names)}")
        place = 0 if name is None else names.index(name)
        return place, self.shown.stacks[place]

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """A frame of its own, so that several views in one notebook do not disturb each other.

        Where no page can be shown (a notebook on paper, or in a mail) there is a picture, and text.
        """
        makers: dict[str, Callable[[], Any]] = {
            "text/html": self._frame,
            "image/png": self._image,
            "text/plain": self.__repr__,
        }
        wanted = set(include or makers) - set(exclude or ())
        made = {kind: make() for kind, make in makers.items() if kind in wanted}
        return {kind: content for kind, content in made.items() if content is not None}

    def _frame(self) -> str:
        return frame_of(self.page, f"attention of {self.shown.model}")

    def _image(self) -> bytes | None:
        """The plainest head's lines; None for more tokens than a picture holds."""
        from headscope.draw.saving import picture_bytes

        try:
            return picture_bytes(self.picture(), "png")
        except InputError:
            return None

    def __repr__(self) -> str:
        sizes = ", ".join(
            grid_size(*stack.attention.shape[:2])
            + ("" if stack.name == "self" else f" ({stack.name})")
            for stack in self.shown.stacks
        )
        tokens = " + ".join(str(len(side)) for side in self.shown.sides)
        text = self.shown.text
        text = text if len(text) < 70 else f"{text[:69]}…"
        return f"<headscope.View {self.shown.model}: {sizes}, {tokens} tokens: {text}>"


def view_of(
    model: Model,
    text: str,
    pair: str | None = None,
    *,
    names: Run | None,
    versus_model: Callable[[], Model] | None,
    versus_text: str | None,
    window: tuple[int, int] | None,
    detail: str | Sequence[Head | str],
    head: Head | str | None,
    flow: Sequence[str],
    untrained: bool,
) -> View:
    """The view of a request that is known to be right; arguments as of `view`.

    names         a finished run of the model
    versus_model  loads the other model
    """
    from headscope.views.capture import capture_example
    from headscope.views.captured_example import beside_model, beside_text, beside_untrained

    if names is not None:
        _check_same(names, model)
    exact = detail if isinstance(detail, str) else [_place(each, model) for each in detail]
    opened = None if head is None else _place(head, model)
    shown = capture_example(model, text, pair, window=window, flow=flow)
    labels = [stack_labels(stack, shown.sides) for stack in shown.stacks]
    if names is not None:
        first = shown.stacks[0]
        labels[0] = _named(names, first)
        first = replace(first, importance=_importance(names, first))
        shown = replace(shown, stacks=(first, *shown.stacks[1:]))
    if versus_model is not None:
        other = capture_example(versus_model(), text, pair, window=window)
        shown = beside_model(shown, other)
    if versus_text is not None:
        shown = beside_text(shown, capture_example(model, versus_text, pair, window=window))
    if untrained:
        from headscope.run.control import untrained_model

        other = capture_example(untrained_model(model), text, pair, window=window)
        shown = beside_untrained(shown, other)
    return View(shown, labels, exact, opened)


def _place(head: Head | str, model: Model) -> Head:
    """(place of the layer among those that attend, head), both from 0, of a head that is there."""
    shape, names = model.shape, model.shape.names
    place, number = names.read(head)
    if not (0 <= place < shape.layers and 0 <= number < shape.heads):
        last = names.both(shape.layers - 1, shape.heads - 1)
        raise InputError(
            f"found no head {names.both(place, number)}; wanted one of {shape.size}, up to {last}"
        )
    return place, number


def _check_same(run: Run, model: Model) -> None:
    theirs = str(run.manifest.get("model", {}).get("sha256", model.sha256))
    if theirs != model.sha256:
        raise InputError(
            f"the run {run.path} is of another model (weights {theirs[:12]}, this model "
            f"{model.sha256[:12]}); wanted an atlas of {model.name!r}"
        )


def _named(run: Run, stack: StackMaps) -> list[list[str]]:
    from headscope.claims.head_labels import run_labels

    with run.showing():
        labels = run_labels(run.tree)
    if (len(labels), len(labels[0])) != stack.attention.shape[:2]:
        raise InputError(
            f"the run {run.path} has {grid_size(len(labels), len(labels[0]))}, the example "
            f"{stack.attention.shape[:2]}; wanted an atlas of this model"
        )
    return labels


def _importance(run: Run, stack: StackMaps) -> Float64 | None:
    """[layer, head, neuron] how much of the scores each neuron made in the run's corpus."""
    if stack.vectors is None or "neurons" not in run or "neuron_importance" not in run["neurons"]:
        return None
    values = run["neurons"]["neuron_importance"].transpose("layer", "head", "neuron").values
    layers, heads, _, dim = stack.vectors.queries.shape
    return values if values.shape == (layers, heads, dim) and np.isfinite(values).all() else None
