"""What was run on what, in words: the facts at the top of a report, and a notebook's summary."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import xarray as xr

from headscope.claims.caption_words import over
from headscope.claims.control import controls, sample_words
from headscope.claims.headline import headline
from headscope.claims.length_bands import bands
from headscope.core.display import printable
from headscope.core.head_names import renamed
from headscope.core.intervals import FEWEST
from headscope.core.results import shape
from headscope.core.wording import capital, grid_size, percent, precision_in_words
from headscope.corpus.contents import READINGS, unknown_words
from headscope.page.shell import template
from headscope.report import heads

Manifest = Mapping[str, Any]
SUMMED_UP = 5  # telling heads of a summary


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: `label`, `value`; code marks what is to be set as code."""

    label: str
    value: str
    code: bool = False


def facts(tree: xr.DataTree, manifest: Manifest) -> list[Fact]:
    """The rows of the table at the top of a report; unknown facts are left out."""
    model, counts = manifest_part(manifest, "model"), manifest_part(manifest, "counts")
    attrs = {str(key): value for key, value in tree.attrs.items()}
    layers, heads = shape(tree)
    own = {"corpus": manifest_part(manifest, "corpus").get("kind"), **attrs}
    own |= {"counts": counts, "long": manifest.get("long")}
    of_runs = partial(_of_runs, manifest.get("compared") or [own])
    counts = {} if "compared" in manifest else counts
    fingerprint = manifest.get("fingerprint") or attrs.get("spec_fingerprint")
    version = _text(attrs.get("headscope_version"))
    date = _text(manifest.get("created") or attrs.get("created"))
    sealed = "" if manifest else "none: nothing says what this was computed from"
    rows = [
        Fact("Manifest", sealed),
        *(Fact("Doubtful", _text(note)) for note in notes(manifest)),
        Fact("Model", _text(model.get("name") or attrs.get("model"))),
        Fact("Revision", _text(model.get("revision") or attrs.get("revision")), code=True),
        Fact("Weights, sha256", _text(model.get("sha256") or attrs.get("model_sha256")), code=True),
        Fact("Architecture", _architecture(model, attrs, layers, heads)),
        Fact("Compared with", _compared_with(manifest, model)),
        Fact("Corpus", of_runs(lambda run: _text(run.get("corpus")))),
        Fact("Read", of_runs(lambda run: _read(manifest_part(run, "counts"), run))),
        Fact("Stopped", stopped_early(manifest)),
        Fact("Read beside", beside(tree, counts)),
        Fact("Lengths", _lengths(tree, counts)),
        Fact("Left out", of_runs(lambda run: _left_out(manifest_part(run, "counts"), run))),
        Fact("Unknown", unknown_words(counts)),
        Fact("Long inputs", of_runs(lambda run: _text(run.get("long")))),
        Fact("Analyses", ", ".join(map(str, manifest.get("analyses") or tree.children))),
        Fact("Control", _control(tree)),
        Fact("Intervals", _intervals(attrs) + _at_every_look(manifest)),
        Fact("Precision", precision_in_words(_dtype(manifest))),
        Fact("Linear layers", _text(manifest.get("linears"))),
        Fact("Made", ", ".join(filter(None, [date, f"headscope {version}" if version else ""]))),
        Fact("Spec fingerprint", _text(fingerprint), code=True),
    ]
    return [row for row in rows if row.value]


def details(manifest: Manifest) -> dict[str, list[Fact] | str]:
    """Files of the corpus with their sha256, settings, versions; and the command, '' for none."""
    corpora = [manifest_part(manifest, "corpus"), *manifest.get("compared", ())]
    files = [file for corpus in corpora for file in corpus.get("files") or []]
    return {
        "files": _coded(dict.fromkeys((file.get("name"), _content(file)) for file in files)),
        "settings": _coded(manifest_part(manifest, "spec").items()),
        "versions": _coded(manifest_part(manifest, "versions").items()),
        "command": _text(manifest.get("command")),
    }


def run_summary(tree: xr.DataTree, manifest: Manifest) -> str:
    """What a notebook shows of a run: a small piece of HTML without styles, scripts or requests."""
    rows = {fact.label: fact.value for fact in facts(tree, manifest)}
    opening = heads.opening_of(tree)
    sentences = [] if opening is None else opening[0].findings(opening[1])
    return template("summary.html.j2").render(
        title=printable(tree.attrs.get("title", "headscope atlas")),
        model=printable(tree.attrs.get("model", "a model")),
        size=rows["Architecture"],
        n=over(tree),
        headline=headline(tree) if opening is None else opening[0].lede(opening[1]),
        analyses=rows.get("Analyses", ""),
        findings=[*notes(manifest), *sentences],
        telling=heads.telling(tree, count=SUMMED_UP),
    )


def notes(manifest: Manifest) -> list[str]:
    """What makes the numbers doubtful, in sentences."""
    return [f"{capital(_text(note))}." for note in manifest.get("notes") or ()]


def _coded(rows: Iterable[tuple[object, object]]) -> list[Fact]:
    return [Fact(_text(label), _text(value), code=True) for label, value in rows]


def _content(file: Manifest) -> str:
    size = f"{_text(file['bytes'])} bytes" if "bytes" in file else ""
    return _text(file.get("sha256")) or size


def _dtype(manifest: Manifest) -> str:
    return _text(manifest_part(manifest_part(manifest, "spec"), "model").get("dtype"))


def _architecture(model: Manifest, attrs: Manifest, layers: int, heads: int) -> str:
    name = _text(model.get("architecture") or attrs.get("architecture"))
    size = _text(model.get("size")) or grid_size(layers, heads)
    return f"{name}, {size}" if name else size


def _compared_with(manifest: Manifest, model: Manifest) -> str:
    """The second model of a comparison of runs, and its weights; "" of any other run."""
    runs, own = manifest.get("compared", ()), model.get("sha256")
    others = (run for run in runs if run.get("weights", own) != own)
    run = next(others, None)
    return f"{_text(run['model'])}, {run['size']}, weights {run['weights']}" if run else ""


def _of_runs(runs: Sequence[Manifest], words: Callable[[Manifest], str]) -> str:
    """What is said of a run; of those that a comparison compares, of each where they differ."""
    said = [words(run) for run in runs]
    if len({*said}) == 1:
        return f"{said[0]}, in each run" if said[0] and len(runs) > 1 else said[0]
    return "; ".join(
        f"{_text(run['model'])}: {one}" for run, one in zip(runs, said, strict=True) if one
    )


def _read(counts: Manifest, attrs: Manifest) -> str:
    parts = []
    of_task = attrs.get("counted") == "examples"  # each of which is a document
    for word in ("documents", "examples", "tokens")[of_task:]:
        number = counts.get(word, attrs.get(word))
        if number is not None:
            number = int(number)
            parts.append(f"{number:,} {word[:-1] if number == 1 else word}")
    as_what = READINGS.get(str(counts.get("reading")))
    read = ", ".join(parts) + (f", as {as_what}" if parts and as_what else "")
    return "; ".join([read, *alike(counts)])


def stopped_early(manifest: Manifest) -> str:
    """Where a run with --until stopped, and why; "" for a run without."""
    return "".join(f"{goal}: {read}" for goal, read in _stopped(manifest))


def stopped_note(manifest: Manifest) -> list[str]:
    """The same as a sentence; none for a run without."""
    return [f"With {goal} the run read {read}." for goal, read in _stopped(manifest)]


def _stopped(manifest: Manifest) -> list[tuple[str, str]]:
    """The goal of a run with --until, and what it read; nothing for a run without."""
    until = manifest_part(manifest, "until")
    if not until:
        return []
    about = "about " * bool(until["estimated"])
    of_each = (
        f"{until[name]:,} of {about}{until[f'of_{name}']:,} {name}"
        for name in ("documents", "tokens")
    )
    share = until["tokens"] / max(until["of_tokens"], 1)
    read = f"{', '.join(of_each)} ({percent(share)}, in random order)"
    return [(f"--until {until['asked']}", f"{read}; {renamed(until['why'])}")]


def _at_every_look(manifest: Manifest) -> str:
    held = "; at each look together, so that they hold although the run chose when to stop"
    return held * bool(manifest_part(manifest, "until"))


def alike(counts: Manifest) -> list[str]:
    """What is said of documents of equal content, and of nearly equal ones."""
    about = "about " if counts.get("estimated") else ""
    copies, near = (int(counts.get(name) or 0) for name in ("copies", "nearly_equal"))
    said = []
    if copies:
        one = "is a copy, and counts" if copies == 1 else "are copies, and count"
        said.append(f"{about}{copies:,} more {one} with these")
    if near:
        said.append(f"{about}{near:,} nearly equal another, and count by themselves")
    return said


def beside(tree: xr.DataTree, counts: Manifest) -> str:
    """What else the corpus holds than what most questions read, and which question reads it."""
    readers = dict[str, list[str]]()
    for name, node in tree.children.items():
        readers.setdefault(str(node.attrs.get("reading")), []).append(str(name))
    said = []
    for kind, own in manifest_part(counts, "readings").items():
        if kind != counts.get("reading"):
            for_what = f"for {', '.join(readers[kind])} alone" if kind in readers else "not read"
            said.append(f"{READINGS.get(kind, kind)} ({_read(own, {})}): {for_what}")
    return "; ".join(said)


def _lengths(tree: xr.DataTree, counts: Manifest) -> str:
    if names := list(bands(tree)):
        return f"labels are tried in inputs of {', '.join(names)} tokens apart"
    names = list(manifest_part(counts, "lengths"))
    apart = "; nothing is said of each length apart" * (len(names) > 1)
    return f"inputs of {', '.join(names)} tokens{apart}" if names else ""


def _left_out(counts: Manifest, attrs: Manifest) -> str:
    skipped = int(counts.get("skipped", attrs.get("skipped", 0)) or 0)
    windowed = int(counts.get("windowed", attrs.get("windowed", 0)) or 0)
    parts = []
    for reason, entry in dict(counts.get("reasons") or {}).items():  # {"total": 3, "first": […]}
        total = entry.get("total", 0) if isinstance(entry, Mapping) else entry
        parts.append(f"{_text(reason)}: {_text(total)}")
    if not skipped and not windowed:
        return "nothing"
    words = f"{skipped:,} skipped" + (f" ({', '.join(parts)})" if parts and skipped else "")
    return f"{words}; {windowed:,} cut into windows because too long"


def _control(tree: xr.DataTree) -> str:
    networks = controls(tree)
    if not networks:
        return ""
    return f"{', '.join(str(one.attrs['model']) for one in networks)}, over {sample_words(tree)}"


def _intervals(attrs: Manifest) -> str:
    counted, documents = attrs.get("counted", "documents"), int(attrs.get("documents", FEWEST))
    if documents < FEWEST:
        return f"none: {documents} {counted}, and an interval needs at least {FEWEST}"
    return f"95 %, over {counted}; none where fewer than {FEWEST} have a part in a number"


def manifest_part(manifest: Manifest, key: str) -> Manifest:
    """A part of it by name; empty where there is none."""
    part = manifest.get(key)
    return part if isinstance(part, Mapping) else {}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (dict, list, tuple, bool)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return printable(value)
