"""Export a run as a static site: report, cards, views, tables and figures that any web host serves.

All links are relative, so that the folder opens from the disk too. The only addresses outside are
those of the papers that the report names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import headscope
from headscope.claims.caption_words import over
from headscope.claims.head_labels import run_labels
from headscope.core.results import derived_once, model_name, printable, shape
from headscope.core.stored_maps import stored_inputs
from headscope.core.whole_file import held, names_in, write_whole
from headscope.draw.figures import pictures
from headscope.errors import InputError
from headscope.heads.head_card import head_card
from headscope.page.shell import render_page, style_of, template, write_page
from headscope.report import heads
from headscope.report.build import write_report
from headscope.report.card_page import render_card
from headscope.report.cite import cite
from headscope.report.example_views import input_page
from headscope.run.store import LIST, Run, RunFolder
from headscope.views.view_page import build_page

OPENED = 5  # heads that the first page names


def export_site(run: Run | str | Path, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Writes a finished run as a folder of pages; returns its index.html, which is written last.

    run        or its folder; nothing of it is changed
    overwrite  replace an earlier export: the files that it wrote, nothing else
    raises     RunFolderError for a run that is not finished, or a folder that another process
               writes to; InputError for one that holds anything else; UnwrittenError where nothing
               can be written
    """
    run, place = run if isinstance(run, Run) else headscope.open_run(run), Path(folder)
    with held(place):
        _clear(place, overwrite=overwrite)
        return _written(run, place)


def _written(run: Run, place: Path) -> Path:
    write_report(run, place)
    with derived_once(), RunFolder(place).listing():
        write_page(place / "heads.html", cards_page(run))
        write_whole(place / "sources.bib", cite(run).bibtex.encode())
        views = []
        for name, text, page in site_views(run):
            write_whole(place / name, page)
            views.append((name, text))
        return write_page(place / "index.html", index_page(run, views, place))


def index_page(run: Run, views: Sequence[tuple[str, str]], place: Path) -> str:
    """The first page of a site, which leads to all others.

    views  address and text of each page of a stored input
    place  the folder whose figures and tables are listed
    """
    with derived_once():
        layers, per_layer = shape(run.tree)
        return render_page(
            template("site.html.j2"),
            style=style_of("report.css", "card.css"),
            model=model_name(run.tree),
            n=over(run.tree),
            layers=layers,
            heads=per_layer,
            title=printable(run.tree.attrs.get("title", "headscope atlas")),
            telling=heads.telling(run.tree, count=OPENED),
            views=views,
            lists=[(what.capitalize(), _by_name(place / what)) for what in ("figures", "tables")],
            methods=cite(run).text,
        )


def cards_page(run: Run) -> str:
    """The page of the cards of all heads; opens with the most informative one."""
    with derived_once():
        telling = heads.telling(run.tree, count=OPENED)
        first = divmod(telling[0]["unit"] if telling else 0, shape(run.tree)[1])
        return render_card(run.tree, head_card(run.tree, *first))


def site_views(run: Run) -> Iterator[tuple[str, str, bytes]]:
    """The page of each stored input: its address, its text, the page."""
    for at, kept in enumerate(stored_inputs(run.tree), start=1):
        data = input_page(run.tree, kept, model=model_name(run.tree), labels=[run_labels(run.tree)])
        yield f"views/{at:02d}.html", printable(kept.text), build_page(data)


def _clear(place: Path, *, overwrite: bool) -> None:
    """Remove an earlier export, if requested; raise for a folder that holds anything else."""
    if place.is_file():
        raise InputError(f"{place} is a file; wanted a folder with -o")
    written = RunFolder(place).listed()
    ours = {LIST, *(Path(name).parts[0] for name in written)}
    if foreign := set(names_in(place)) - ours:
        raise InputError(
            f"{place} holds {min(foreign)!r}, which is not part of an export; choose another "
            "folder with -o"
        )
    if written and not overwrite:
        raise InputError(f"{place} holds an export already; wanted a new folder, or --overwrite")
    for name in [*written, LIST]:
        (place / name).unlink(missing_ok=True)


def _by_name(folder: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    """Files of a folder by their name, or the figure's title: (suffix, address) of each."""
    rows: dict[str, list[tuple[str, str]]] = {}
    titles = {name: picture.title for name, picture in pictures().items()}
    for file in sorted(folder.rglob("*.*")):
        name = file.relative_to(folder).with_suffix("").as_posix()
        shown = titles.get(name) or printable(name.replace("_", " "))
        address = quote(file.relative_to(folder.parent).as_posix())
        rows.setdefault(shown, []).append((file.suffix[1:].upper(), address))
    return list(rows.items())
