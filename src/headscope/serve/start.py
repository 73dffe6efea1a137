"""Puts a live page together: of a model, or of a run and its model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError, InputError
from headscope.run.store import MANIFEST, RESULTS
from headscope.serve.app import LiveApp
from headscope.serve.live_page import LivePage
from headscope.serve.run_pages import RunPages
from headscope.serve.waiting import WaitingLine

if TYPE_CHECKING:
    from headscope.serve.live_model import LiveModel

CLIENTS = 32
NO_MODEL: dict[str, Any] = {
    "name": "no model", "size": "", "answers": "vectors", "longest": 0, "decodes": False,
    "pairs": False, "changes": False, "mask": None,
}  # fmt: skip


def is_run(name: str) -> bool:
    """Whether a folder holds a run, and no model."""
    folder = Path(name)
    has = [(folder / file).is_file() for file in (MANIFEST, RESULTS)]
    return any(has) and not (folder / "config.json").is_file()


def live_app(
    name: str, *, longest: int, text: str | None = None, pair: str = "", clients: int = CLIENTS,
    **loading: Any,
) -> LiveApp:  # fmt: skip
    """What serves a model, or a run's pages and its model.

    name     of a model, or a run folder
    longest  tokens of a text at most
    text     that the page opens with, and its second text
    clients  that may wait at once
    loading  as `open_model` has it
    raises   ModelError for a model that cannot be loaded; of a run, its pages are served without
    """
    line = WaitingLine(clients)
    if not is_run(name):
        model = _model(name, longest, loading)
        return LiveApp(line, model, LivePage(model.about, text, pair))
    pages = RunPages(Path(name))
    told, absent, of_run = pages.model, "", None
    try:
        if not told.get("name"):
            raise InputError(f"{name} does not say which model it was run on")
        revision = loading["revision"] or told.get("revision") or None
        of_run = _model(str(told["name"]), longest, loading | {"revision": revision})
        if of_run.model.sha256 != told.get("sha256"):
            absent = (
                f"The model {told['name']!r} has other weights by now than when the run was made: "
                "what is typed here is read with other weights than the report tells of."
            )
    except HeadscopeError as error:
        absent = f"The run's model cannot be loaded, its pages can be read: {error}"
    about = NO_MODEL | {"name": str(told.get("name", "no model"))}
    page = LivePage(of_run.about if of_run else about, text, pair, run=True, absent=absent)
    same = of_run is not None and not absent
    return LiveApp(line, of_run, page, pages.labels() if same else None, pages, absent)


def _model(name: str, longest: int, loading: dict[str, Any]) -> LiveModel:
    from headscope.serve.live_model import LiveModel
    from headscope.serve.open_model import open_model

    return LiveModel(open_model(name, **loading), longest=longest)
