"""Export a run as a static site: report, cards, views, tables and figures that any web host serves.

All links are relative, so that the folder opens from the disk too. The only addresses outside are
those of the papers that the report names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import headscope
from headscope.claims.caption_words import over
from headscope.claims.head_labels import run_labels
from headscope.core.display import printable
from headscope.core.head_names import names_of
from headscope.core.inside import digest_inside, names_inside, read_inside
from headscope.core.results import derived_once, model_name, shape
from headscope.core.stored_maps import stored_inputs
from headscope.core.whole_file import DRAFT, held, put_folder, write_whole
from headscope.draw.figures import pictures
from headscope.errors import InputError
from headscope.heads.head_card import head_card
from headscope.page.shell import render_page, style_of, template, write_page
from headscope.report import heads
from headscope.report.build import first_findings, first_words, size_style, write_report
from headscope.report.card_page import render_card
from headscope.report.cite import cite
from headscope.report.example_views import input_page
from headscope.run.store import Run, RunFolder
from headscope.run.written_files import LIST
from headscope.views.view_page import build_page

OPENED = 5  # heads that the first page names


def export_site(run: Run | str | Path, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Writes a finished run as a folder of pages, whole or not at all; returns its index.html.

    run        or its folder; nothing of it is changed
    overwrite  replace an earlier export; a folder that holds anything else is refused
    raises     RunFolderError for a run that is not finished, or a folder that another process
               writes to; InputError for one that holds anything else; HeadscopeError where nothing
               can be written
    """
    run = run if isinstance(run, Run) else headscope.open_run(run)
    place, page = Path(os.path.realpath(folder)), Path(folder, "index.html")
    with held(place):
        if not overwrite and _exported(run, place):  # by a command that was killed as it ended
            return page
        _check(place, overwrite=overwrite)
        with run.showing():
            put_folder(place, partial(_write, run), marks=(LIST,))
    return page


def _write(run: Run, place: Path) -> None:
    write_report(run, place)
    with derived_once(), RunFolder(place).listing():
        write_page(place / "heads.html", cards_page(run))
        write_whole(place / "sources.bib", cite(run).bibtex.encode())
        views = []
        for name, text, page in site_views(run):
            write_whole(place / name, page)
            views.append((name, text))
        write_page(place / "index.html", index_page(run, views, place))


@derived_once()
def index_page(run: Run, views: Sequence[tuple[str, str]], place: Path) -> str:
    """The first page of a site, which leads to all others.

    views  address and text of each page of a stored input
    place  the folder whose figures and tables are listed
    """
    layers, per_layer = shape(run.tree)
    return render_page(
        template("site.html.j2"),
        style="\n".join([style_of("report.css", "card.css"), size_style(run.tree)]),
        model=model_name(run.tree),
        headline=first_words(run.tree),
        findings=first_findings(run.tree, run.manifest),
        cells=heads.cells(run.tree),
        kinds=heads.data_kinds(run.tree),
        ids=heads.card_ids(run.tree),
        names=names_of(run.tree),
        n=over(run.tree),
        layers=layers,
        heads=per_layer,
        title=printable(run.tree.attrs.get("title", "headscope atlas")),
        telling=heads.telling(run.tree, count=OPENED),
        views=views,
        lists=[(what.capitalize(), _by_name(place / what)) for what in ("figures", "tables")],
        methods=cite(run).text,
        sign=_sign(run),
    )


@derived_once()
def cards_page(run: Run) -> str:
    """The page of the cards of all heads; opens with the most informative one."""
    telling = heads.telling(run.tree, count=OPENED)
    first = divmod(telling[0]["unit"] if telling else 0, shape(run.tree)[1])
    return render_card(run.tree, head_card(run.tree, *first))


def site_views(run: Run) -> Iterator[tuple[str, str, bytes]]:
    """The page of each stored input: its address, its text, the page."""
    for at, kept in enumerate(stored_inputs(run.tree), start=1):
        data = input_page(run.tree, kept, model=model_name(run.tree), labels=[run_labels(run.tree)])
        yield f"views/{at:02d}.html", printable(kept.text), build_page(data)


def _check(place: Path, *, overwrite: bool) -> None:
    """Raise InputError for a place that holds anything but an earlier export to be replaced."""
    if place.is_file() or place.is_mount():
        raise InputError(f"{place} is a file or a mounted disk; wanted a folder with -o")
    written = RunFolder(place).listed()
    there = {n for n in names_inside(place) if not PurePosixPath(n).name.startswith(DRAFT)}
    if foreign := there - {LIST, ".lock", *written}:
        raise InputError(
            f"{place} holds {min(foreign)!r}, which is not part of an export; choose another "
            "folder with -o"
        )
    if written and not overwrite:
        raise InputError(f"{place} holds an export already; wanted a new folder, or --overwrite")


def _exported(run: Run, place: Path) -> bool:
    """Whether a place holds the whole export of these very results."""
    written, sign = RunFolder(place).listed(), _sign(run)
    whole = written and all(digest_inside(place, n) == d for n, d in written.items())
    return bool(whole and sign and sign in read_inside(place, "index.html").decode())


def _sign(run: Run) -> str:
    """What the first page says of the results that it is of, and of the version that wrote it."""
    digest = run.manifest.get("results_sha256")
    return f"{digest} {headscope.__version__}" if digest else ""


def _by_name(folder: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    """Files of a folder by their name, or the figure's title: (suffix, address) of each."""
    rows: dict[str, list[tuple[str, str]]] = {}
    titles = {name: picture.title for name, picture in pictures().items()}
    for address in names_inside(folder.parent, folder.name):
        file = Path(address).relative_to(folder.name)
        name = file.with_suffix("").as_posix()
        shown = titles.get(name) or printable(name.replace("_", " "))
        rows.setdefault(shown, []).append((file.suffix[1:].upper(), quote(address)))
    return list(rows.items())
