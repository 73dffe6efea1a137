"""Views the attention in one text: `headscope view`, `hs.view`.

    view("demo", "The cat sat on the mat.")

Nothing heavy is imported before the request is known to be right; `view_text` makes the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.core.head_names import Head
from headscope.core.options import argument, comma_separated, flag, option, takes
from headscope.errors import InputError
from headscope.model.request import model_place
from headscope.run.manifest_file import run_place
from headscope.tasks.task_request import Loading, loaded

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.run.store import Run
    from headscope.views.view_text import View


def window_named(text: str) -> tuple[int, int]:
    """`400-700` as (399, 700); raises InputError for anything else."""
    start, _, stop = text.partition("-")
    if not (start.isdecimal() and stop.isdecimal() and int(start)):
        raise InputError(f"--window {text!r}; wanted first and last token from 1, say 400-700")
    return int(start) - 1, int(stop)


def detail_named(text: str) -> str | tuple[str, ...]:
    """`3-9,5-1` as ("3-9", "5-1"); auto, all and none as they are."""
    return text if text in ("auto", "all", "none") else comma_separated(text)


class ViewRequest(Loading, kw_only=False):
    """What is viewed, and how."""

    model: Model | str | Path = argument("A loaded model, or what `load` takes.", reads=model_place)
    text: str = argument("What the model reads.")
    text_pair: str | None = argument(
        "The second segment; what the decoder reads, for an encoder-decoder.",
        default=None,
        metavar="[TEXT_B]",
    )
    _: KW_ONLY
    atlas: Run | str | Path | None = option(
        "Name the heads by a finished atlas.", reads=run_place, metavar="RUN"
    )
    versus_model: Model | str | Path | None = option(
        "Show the difference from another model.",
        reads=model_place,
        metavar="MODEL",
        python="Of the same tokenizer and shape.",
    )
    versus_text: str | None = option(
        "Show the difference from another text.",
        metavar="TEXT",
        python="Of as many tokens, say with one word changed.",
    )
    window: tuple[int, int] | None = option(
        "First and last token, from 1, to show of a long text.",
        reads=window_named,
        metavar="FROM-TO",
        python="In Python (from, to), from 0 and without the last; at most 512.",
    )
    detail: str | Sequence[Head | str] = option(
        "Heads with exact weights and neuron view: 3-9,5-1, all, none; auto: as many as keep the "
        "page small.",
        "auto",
        reads=detail_named,
        python='Heads are (layer, head), from 0, the model\'s own numbers, or names: "L3H9", "2.8".'
        " A page is small near 1 MB (12 MB beyond 128 tokens).",
    )
    head: Head | str | None = option(
        "The head that the page opens with: L3H9, 3-9, or from 0 2.8; all heads by default.",
        names="--open",
        reads=str,
        metavar="HEAD",
        python="With another model or text the page opens on the difference.",
    )
    untrained: bool = flag(
        "Beside the neurons of the model, those of an untrained network of its shape."
    )
    flow: Sequence[str] | str | None = option(
        "Show what layers take from the input, by rollout, globenc, alti, "
        "weighted_norm_residual, value_zeroing, max_flow; comma-separated.",
        reads=str,
        metavar="METHODS",
        python="In Python also several; of methods see `hs.flow`.",
    )

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of `flow`, each once; InputError for one that is not known."""
        from headscope.analyses.flow import check_methods

        if not isinstance(self.flow, str) and not self.flow:
            return ()
        names = self.flow.split(",") if isinstance(self.flow, str) else self.flow
        return check_methods(names, also=["max_flow"])


@takes(ViewRequest)
def view(request: ViewRequest) -> View:
    """Views of what every head of a model attends to in one text or pair of texts.

    Raises InputError for empty text or the name of a file, texts or models that do not fit, a head
    that is not there, a run of another model; what `load` and `open_run` raise.
    """
    from headscope.corpus.given_corpus import refuse_file_name

    if request.versus_model is not None and request.versus_text is not None:
        raise InputError("found another model and another text; wanted one of the two")
    if request.untrained and request.detail == "none":
        raise InputError(
            "found untrained and detail none: no head has a neuron view; wanted detail all, auto, "
            "or some heads"
        )
    if not request.text.strip():
        raise InputError("found an empty text; wanted something to read")
    for model in (request.model, request.versus_model):
        if isinstance(model, str | Path):
            model_place(str(model))
    for each in filter(None, (request.text, request.text_pair, request.versus_text)):
        refuse_file_name(each)
    methods = request.methods  # checked before anything is loaded
    from headscope.run.store import open_run
    from headscope.views.view_text import view_of

    atlas, other, loading = request.atlas, request.versus_model, Loading.of(request)
    names = open_run(atlas) if isinstance(atlas, str | Path) else atlas
    return view_of(
        loaded(request.model, loading),
        request.text,
        request.text_pair,
        names=names,
        versus_model=None if other is None else partial(loaded, other, loading),
        versus_text=request.versus_text,
        window=request.window,
        detail=request.detail,
        head=request.head,
        flow=methods,
        untrained=request.untrained,
    )
