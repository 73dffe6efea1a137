"""Cite a run: BibTeX of every source behind its numbers, and a methods paragraph.

The paragraph says what the run's manifest and results know, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

import headscope
from headscope.claims.bibliography import SOURCES
from headscope.claims.question import named
from headscope.claims.terms import OURS
from headscope.core.display import printable, title_name
from headscope.core.results import model_name
from headscope.heads.tables import tex
from headscope.report.run_facts import facts, manifest_part
from headscope.run.store import Run

VENUES = {"inproceedings": "booktitle", "article": "journal", "book": "publisher"}
SHOWN = 16  # characters of a hash
_OURS = re.compile(rf"\bours\b|^{OURS}\b")  # in a source that is no publication


@dataclass(frozen=True)
class Citation:
    """What a paper says of a run.

    text     a methods paragraph
    bibtex   an entry for headscope and for each source
    unknown  sources that are not in our bibliography, as a plug-in names them
    """

    text: str
    bibtex: str
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.bibtex}"


def cite(run: Run | str | Path) -> Citation:
    """The sources behind a run, and its methods in one paragraph.

    run     a finished run, or its folder
    raises  RunFolderError for a folder without a finished run
    """
    run = run if isinstance(run, Run) else headscope.open_run(run)
    with run.showing():
        return _cited_run(run)


def _cited_run(run: Run) -> Citation:
    sources = sources_of(run)
    every = {one for of_group in sources.values() for one in of_group}
    own = {
        "author": "{headscope developers}",
        "title": "{headscope}",
        "version": printable(run.tree.attrs.get("headscope_version", "")),
        "year": str(run.manifest.get("created", ""))[:4],
    }
    entries = [_entry("software", OURS, own), *map(_paper, sorted(every & SOURCES.keys()))]
    text = " ".join(filter(None, _sentences(run, sources)))
    return Citation(text, "\n".join(entries), tuple(sorted(every - SOURCES.keys())))


def sources_of(run: Run) -> dict[str, list[str]]:
    """Group of a run → what its numbers rest on, ours left out.

    returns  short citations of SOURCES, and as they stand the sources that are not there
    """
    said = {name: _said(name, run.tree.children[name]) for name in run}
    return {name: sorted({one for text in said[name] for one in _cited(text)}) for name in said}


def _said(name: str, group: xr.DataTree) -> set[str]:
    """The sources of numbers, and of their words by the question; without them the question's."""
    question = named(name)
    said = {str(one.attrs.get("source", "")) for one in group.variables.values()} - {""}
    if question is None:
        return said
    chosen = [one.values.flat for one in group.coords.values() if one.dtype.kind in "OU"]
    words = {str(word) for names in (group.variables, *chosen) for word in names}
    terms = question.part("terms", {})
    return (said or {question.source}) | {terms[word].source for word in words & terms.keys()}


def _cited(text: str) -> Iterator[str]:
    """What each part of a source cites: papers that we know, else the part, if it is not ours."""
    for part in text.replace(" and Zuidema", " & Zuidema").split("; "):
        known = [name for name in SOURCES if name in part]
        yield from known or [part] * (part != "" and not _OURS.search(part))


def key_of(name: str) -> str:
    """The BibTeX key of a short citation: `clark2019`."""
    first, *_, year = name.split()
    return first.lower() + year


def _paper(name: str) -> str:
    one = SOURCES[name]
    return _entry(
        one.kind,
        key_of(name),
        {
            "author": tex(one.authors).replace(", and others", ", others").replace(", ", " and "),
            "title": f"{{{tex(one.title)}}}",
            VENUES.get(one.kind, "howpublished"): tex(one.venue.partition(";")[0]),
            "volume": str(one.volume or ""),
            "year": str(one.year),
            "url": one.link,
        },
    )


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines = (f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@{kind}{{{key},\n{''.join(lines)}}}\n"


def _sentences(run: Run, sources: Mapping[str, list[str]]) -> Iterator[str]:
    """The methods, a sentence a fact; "" for what is not known."""
    tree, manifest = run.tree, run.manifest
    known = {fact.label: fact.value for fact in facts(tree, manifest)}
    spec, base = manifest_part(manifest, "spec"), manifest_part(manifest, "base")
    revision, version = known.get("Revision"), printable(tree.attrs.get("headscope_version", ""))
    yield _told(
        f"{model_name(tree)} was analysed with headscope {version}",
        known["Architecture"],
        printable(manifest_part(spec, "model").get("dtype", "")),
        f"revision {revision}" * bool(revision),
        _hashed("weights", known.get("Weights, sha256")),
    )
    if base:
        before = f"It was compared with {title_name(printable(base.get('name')))}"
        yield _told(before, _hashed("weights", base.get("sha256")))
    digest = manifest_part(spec, "corpus").get("inputs_sha256")
    yield _told(f"It read {known.get('Corpus')}", known.get("Read"), _hashed("inputs", digest))
    yield f"Left out: {known['Left out']}."
    citations = {name: f"({'; '.join(cited)})" * bool(cited) for name, cited in sources.items()}
    yield _listed("Analyses", citations)
    settings = _flat(manifest_part(spec, "settings"))
    yield _listed("Settings", {name: value for name, value in settings if name != "analyses"})
    yield f"Control: {known['Control']}." if "Control" in known else ""
    yield f"Intervals: {known['Intervals']}."
    yield _listed("Versions", manifest_part(manifest, "versions"))


def _told(sentence: str, *more: object) -> str:
    brackets = ", ".join(str(one) for one in more if one)
    return f"{sentence} ({brackets})." if brackets else f"{sentence}."


def _hashed(what: str, digest: object) -> str:
    return f"sha256 of the {what} {printable(digest)[:SHOWN]}…" if digest else ""


def _listed(what: str, rows: Mapping[str, object]) -> str:
    parts = (f"{printable(name)} {printable(rows[name])}".strip() for name in sorted(rows))
    return f"{what}: {', '.join(parts)}." if rows else ""


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Settings that were given, one by one: `options.flow.methods`, `limit`."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif value not in (None, "", []):
            listed = value if isinstance(value, list) else [value]
            yield f"{before}{name}", " ".join(map(str, listed))
