"""How is an example's attention looked at: in a notebook, as a file, from an atlas's labels?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.model import Model, load
from headscope.views.example import Shown, show
from headscope.views.labels import head_labels
from headscope.views.page import build_page
from headscope.views.payload import payload
from headscope.whole_file import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT = 760  # pixels of the frame in a notebook


@dataclass(frozen=True)
class View:
    """The head, model and matrix views of one example; shows itself in a notebook.

    shown   the example with its maps
    labels  [layer][head] what each head does, '' where nothing is telling
    """

    shown: Shown
    labels: list[list[str]]

    @cached_property
    def page(self) -> bytes:
        """One self-contained offline HTML page."""
        return build_page(payload(self.shown, labels=self.labels))

    def save(self, path: str | Path) -> Path:
        """Writes the page, whole or not at all; returns its path."""
        return write_whole(Path(path), partial(_write, self.page))

    def picture(self, *heads: tuple[int, int], columns: int = 1) -> Figure:
        """The lines of these heads as a figure for a paper; `save_picture` writes it.

        heads    (layer, head), from 0; without any, the head of the largest weight between tokens
        columns  of a journal: 1 or 2
        raises   InputError for a head that is not there, or more tokens than fit
        """
        from headscope.draw.attention_lines import attention_lines

        shown = self.shown
        return attention_lines(
            shown.tokens, shown.attention, heads=list(heads) or [self._plainest()],
            special=shown.special, labels=self.labels, columns=columns,
        )  # fmt: skip

    def _plainest(self) -> tuple[int, int]:
        """The head that gives other, not special tokens most."""
        real = ~self.shown.special
        between = self.shown.attention[:, :, real][..., real] * ~np.eye(real.sum(), dtype=bool)
        best = np.argmax(between.max(-1).mean(-1)) if real.any() else 0  # over [layer, head]
        layer, head = np.unravel_index(best, self.shown.attention.shape[:2])
        return int(layer), int(head)

    def _repr_mimebundle_(self, **_: Any) -> Mapping[str, str]:
        """A frame of its own, so that several views in one notebook do not disturb each other."""
        page = escape(self.page.decode("utf-8"), quote=True)
        frame = (
            f'<iframe title="attention of {escape(self.shown.model)}" srcdoc="{page}" '
            f'sandbox="allow-scripts allow-downloads" loading="lazy" '
            f'style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
        )
        return {"text/html": frame, "text/plain": repr(self)}

    def __repr__(self) -> str:
        """The model, the size, and the beginning of the text."""
        layers, heads = self.shown.attention.shape[:2]
        text = " ".join(self.shown.tokens[:12])
        return (
            f"<headscope.View {self.shown.model}: {layers} layers × {heads} heads, "
            f"{len(self.shown.tokens)} tokens: {text}>"
        )


def view(model: Model | str, text: str, text_pair: str | None = None) -> View:
    """What every head of a model does in one text or pair of texts.

    model   a loaded model, or what `load` takes
    raises  InputError for empty text or more tokens than can be shown; what `load` raises
    """
    shown = show(model if isinstance(model, Model) else load(model), text, text_pair)
    labels = head_labels(
        shown.attention, special=shown.special, cls=shown.cls, sep=shown.sep,
        punctuation=shown.punctuation,
    )  # fmt: skip
    return View(shown, labels)


def _write(page: bytes, path: str) -> None:
    Path(path).write_bytes(page)
