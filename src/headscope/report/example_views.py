"""Put the views of a run's stored inputs into its report, and choose where each head opens.

The views of an input are a page of their own (`views.view_page`). As these pages share most parts,
the report holds each part once. Its script builds a page when it is asked for and shows it in a
frame, which inherits the report's policy.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from headscope.claims.head_labels import run_labels
from headscope.claims.reading import parts_of
from headscope.core.display import printable
from headscope.core.head_names import HeadNames, names_of
from headscope.core.stored_maps import StoredInput, stored_inputs
from headscope.page.shell import island
from headscope.views.captured_example import ExampleMaps, NamedMaps, StackMaps, TokenSide
from headscope.views.view_page import build_page, page_script, page_style, payload

ROOM = 1_200_000  # characters of maps; inputs beyond are left out
LONGEST = 60  # characters of an input where it is named
CHOSEN = {
    "": "chosen without regard to attention",
    "moved": "those whose answers change with most heads off; the views show the whole model",
    "changed": "those whose maps changed most; the views show both models, and their difference",
}
NO_VECTORS = "A run keeps no queries and keys: headscope view shows them, of any text."


@dataclass(frozen=True)
class ChangedHead:
    """A head whose map differs between two models, and what it is called."""

    unit: int
    name: str


@dataclass(frozen=True)
class ExampleViews:
    """The inputs of a report.

    texts   [input] what was read
    looks   [unit] where each head is opened: the input, and the token that looks, if it is one;
            none where there is no input
    framed  (style, script) of the pages
    data    what the report's script needs, as JSON
    chosen  how they were chosen, in words
    changed [input] of two models, the head whose map differs most; else none
    """

    texts: list[str] = field(default_factory=list)
    looks: list[tuple[int, int | None]] = field(default_factory=list)
    framed: list[tuple[str, str]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    chosen: str = CHOSEN[""]
    changed: list[ChangedHead] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """[input] the texts, cut to LONGEST."""
        return [_cut(text) for text in self.texts]


def input_page(tree: xr.DataTree, kept: StoredInput, *, model: str, **more: Any) -> dict[str, Any]:
    """The data of the page of one stored input, without vectors; `more` is of `payload`."""
    data = payload(_shown(kept, model, names_of(tree).numbers), detail="none", **more)
    return {**data, "title": kept.text}


def example_views(tree: xr.DataTree, *, model: str) -> ExampleViews:
    """The views of the inputs that a run of `model` kept; empty for runs that kept none."""
    kept, pages, taken = stored_inputs(tree), list[dict[str, Any]](), 0
    style, script = page_style(), page_script()
    for one in kept:
        data = input_page(tree, one, model=model)
        taken += sum(len(text) for text in data["stacks"][0]["measures"][0]["data"])
        if pages and taken > ROOM:
            break
        page = build_page(data).decode("utf-8")
        pages.append({"parts": _parts(page, style, island(data), script), "payload": data})
    if not pages:
        return ExampleViews()
    kept = kept[: len(pages)]
    looks = [look for made in parts_of(tree, "looks", kept) for look in made]
    chosen = CHOSEN[str(tree.children["examples"].attrs.get("chosen", ""))]
    texts = [printable(one.text) for one in kept]
    views = ExampleViews(
        texts, looks, [(style, script)], chosen=chosen, changed=_changed(kept, names_of(tree))
    )
    views.data.update(
        style=style,
        script=script,
        pages=pages,
        names=views.names,
        labels=run_labels(tree),
        looks=[list(look) for look in looks],
    )
    return views


def _changed(kept: list[StoredInput], names: HeadNames) -> list[ChangedHead]:
    """[input] the head of the largest 1 - cosine there."""
    heads = []
    for one in kept:
        if one.versus is None:
            return []
        a, b = (maps.astype(np.float64) for maps in (one.attention, one.versus))
        product, *sizes = ((x * y).sum((2, 3)) for x, y in ((a, b), (a, a), (b, b)))
        unit = int(np.argmin(product / np.sqrt(sizes[0] * sizes[1])))  # of [layer, head]
        heads.append(ChangedHead(unit, names.unit(unit, a.shape[1])))
    return heads


def _parts(page: str, *between: str) -> list[str]:
    """Split a page at the given pieces; returns the text before, between and after them."""
    parts = []
    for piece in between:
        part, _, page = page.partition(piece)
        parts.append(part)
    return [*parts, page]


def _shown(kept: StoredInput, model: str, numbers: tuple[int, ...]) -> ExampleMaps:
    side = TokenSide(
        kept.tokens, kept.special, kept.segment, kept.word, kept.cls, kept.sep, kept.punctuation
    )
    norms = None if kept.value_norm is None else kept.value_norm.astype(np.float32)
    versus = None
    if kept.versus is not None:
        maps = kept.versus.astype(np.float32)
        versus = NamedMaps("versus", kept.versus_name, "probability", maps)
    attention = kept.attention.astype(np.float32)
    stack = StackMaps(
        "self", 0, 0, attention, norms, why_none=NO_VECTORS, versus=versus, numbers=numbers
    )
    return ExampleMaps(model, (side,), (stack,), _folded(kept))


def _folded(kept: StoredInput) -> str:
    many = kept.count[kept.count > 1]
    if not len(many):
        return ""
    return (
        f"Of {int(kept.count.sum())} tokens, {int(many.sum())} in the middle stand at "
        f"{'one place' if len(many) == 1 else f'{len(many)} places'}, “…”: attention to them is "
        "the sum, attention from them the mean."
    )


def _cut(text: str) -> str:
    """The text, cut to LONGEST characters, if possible at the end of a word."""
    if len(text) <= LONGEST:
        return text
    begun = text[: LONGEST - 1]
    return (begun[: begun.rfind(" ")] if " " in begun else begun) + "…"
