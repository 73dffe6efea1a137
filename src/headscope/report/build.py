"""How do a result and its manifest become one page that works offline and for good?"""

from __future__ import annotations

import re
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import xarray as xr
from markupsafe import Markup

from headscope.analyses.divergence.figure import MAP, map_caption
from headscope.analyses.language.section import language
from headscope.core.dictionary import SOURCES, TERMS, unit_label
from headscope.core.results import counted, model_name, printable, shape
from headscope.core.whole_file import write_whole
from headscope.draw.wording import over
from headscope.experiments.ablation.section import TASK_GROUPS, task_section
from headscope.experiments.ablation.terms import ABLATION
from headscope.experiments.alignment.section import alignment_section
from headscope.experiments.comparison.section import comparison
from headscope.experiments.probes.section import probe_section
from headscope.heads.tables import write_tables
from headscope.page.policy import content_policy, island
from headscope.page.sections import sections
from headscope.page.svg import Styles
from headscope.page.theme import theme_css
from headscope.report import facts, heads
from headscope.report.cards import cards
from headscope.report.example_views import example_views
from headscope.report.figures import save_figures
from headscope.run.store import why_unwritten

# One module in one scope: what a file uses when it is read must stand before it.
SCRIPTS = ("page.js", "grid.js", "map.js", "table.js", "look.js", "card_maps.js", "card.js")
TELLING = 20
_INTERVAL = re.compile(r"\[[−\d., ]+\]")


def write_report(tree: xr.DataTree, manifest: facts.Manifest, folder: Path) -> Path:
    """Write tables, figures and report.html of a run into its folder; `Run.report` calls it.

    arguments  as for `build_report`
    returns    the path of the page
    raises     HeadscopeError if the folder cannot be written
    """
    try:
        write_tables(tree, folder / "tables")
        save_figures(tree, folder / "figures")
        return build_report(tree, manifest, folder)
    except OSError as error:
        raise why_unwritten(error, folder) from error


def build_report(tree: xr.DataTree, manifest: facts.Manifest, folder: Path) -> Path:
    """Writes report.html into `folder`; the file is whole or as it was.

    tree      a result; sections of absent groups shrink to a line that says so
    manifest  as in the run folder; every key may be missing
    returns   the path of the page: self-contained, no request leaves it
    raises    OSError if the folder cannot be written
    """
    # Half of a surrogate pair is no text, but its escape is what JSON writes for it.
    page = render(tree, manifest).encode("utf-8", errors="backslashreplace")
    return write_whole(folder / "report.html", partial(_write, page))


def render(tree: xr.DataTree, manifest: facts.Manifest) -> str:
    """The page as text."""
    styles = Styles()
    pictures = sections(tree, styles)
    about_language = language(tree, manifest, styles)
    compared = comparison(tree, manifest, styles)
    asked = task_section(tree, manifest, styles) or probe_section(tree, styles)
    asked = asked or alignment_section(tree, styles)
    examples = example_views(tree, model=model_name(tree))
    style = "\n".join([theme_css(), asset("report.css"), asset("card.css"), styles.css()])
    script = "\n".join(asset(name) for name in SCRIPTS)
    return template("report.html.j2").render(
        **_content(tree, manifest),
        sections=pictures,
        language=about_language,
        comparison=compared,
        task=asked,
        style=Markup(style),
        script=Markup(script),
        examples=examples,
        policy=content_policy(style=style, script=script, framed=examples.framed),
        island=Markup(island({**heads.data(tree), "cards": cards(tree)})),
        views=Markup(island(examples.data)),
    )


def unbroken(text: str) -> str:
    """The text with no line break inside an interval or before a unit."""
    spaced = _INTERVAL.sub(lambda match: match[0].replace(" ", "\u00a0"), text)
    return spaced.replace(" %", "\u00a0%")


def _content(tree: xr.DataTree, manifest: facts.Manifest) -> dict[str, Any]:
    layers, per_layer = shape(tree)
    of_task = ABLATION if TASK_GROUPS & set(tree.children) else {}  # they come first there
    return {
        "model": model_name(tree),
        "title": printable(tree.attrs.get("title", "headscope atlas")),
        "counted": counted(tree),
        "layers": layers,
        "heads": per_layer,
        "facts": facts.facts(tree, manifest),
        "files": facts.files(manifest),
        "settings": facts.settings(manifest),
        "versions": facts.versions(manifest),
        "command": facts.command(manifest),
        "telling": heads.telling(tree, count=TELLING),
        "label_counts": heads.label_counts(tree),
        "nothing": heads.nothing(tree),
        "columns": heads.columns(tree),
        "rows": heads.rows(tree),
        "n": over(tree),
        "has_map": MAP.available(tree),
        "map_caption": map_caption(tree),
        "terms": {**of_task, **TERMS},
        "sources": SOURCES,
        "unit_label": unit_label,
        "version": str(tree.attrs.get("headscope_version", "")),
    }


def template(name: str) -> jinja2.Template:
    """One of the pages in `assets`: whatever is put into it is escaped, unless it is Markup."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(asset),
    )  # fmt: skip
    # Panels are markup made here from numbers; the names drawn in them are escaped by the
    # XML writer.
    environment.filters["drawing"] = Markup
    environment.filters["unbroken"] = unbroken
    return environment.get_template(name)


def asset(name: str) -> str:
    """The text of a file in `assets`."""
    return (resources.files("headscope.report") / "assets" / name).read_text(encoding="utf-8")


def _write(page: bytes, path: str) -> None:
    Path(path).write_bytes(page)
