"""What commands show in a terminal: lines, progress bars, and what a run came to."""

from __future__ import annotations

import html
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headscope.core import progress
from headscope.core.head_names import Head, HeadNames, head_named
from headscope.core.wording import grid_size, how_many
from headscope.errors import shortened

if TYPE_CHECKING:
    from headscope.corpus import AnnotatedCorpus, Corpus

DIGITS = 11  # of seconds since 1970: the year 5138


def printable(text: str) -> str:
    """The text with control characters and lone surrogates escaped: file names may hold any."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape", "replace").decode()
        for c in text
    )


def say(text: str) -> None:
    """Print one line or more on stdout."""
    with progress.hidden():
        click.echo(printable(text))


def tell(lines: Iterable[str], summary: Any = None, **settings: Any) -> None:
    """Print the lines; where there is a machine-readable summary, that instead, as JSON."""
    if summary is None:
        for line in lines:
            say(line)
    else:
        click.echo(json.dumps(summary, **settings))


def complain(text: str) -> None:
    """Print one line or more on stderr, after the program's name; lost where stderr is full."""
    with progress.hidden(), suppress(OSError):
        click.echo(f"headscope: {shortened(printable(text))}", err=True)


def another_port(wanted: int, taken: int) -> None:
    """Say so where a server has another port than the one that was wanted; 0: any."""
    if wanted not in (0, taken):
        complain(f"port {wanted} is in use: {taken} is taken instead")


@contextmanager
def in_browser(address: str) -> Iterator[None]:
    """Open an address that holds a secret; inside the context its browser may still be starting.

    Every user of this machine can read a browser's command line: it names a file in a folder that
    only this user can open, which leads on to the address.
    """
    with tempfile.TemporaryDirectory(prefix="headscope-") as folder:
        page, link = Path(folder, "open.html"), html.escape(address)
        with open(page, "x", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
            file.write(
                '<!doctype html><meta charset="utf-8"><title>headscope</title>'
                '<meta name="referrer" content="no-referrer">'
                f'<meta http-equiv="refresh" content="0; url={link}"><a href="{link}">Open</a>\n'
            )
        click.launch(page.as_uri())
        yield


def prepare() -> None:
    """Keep the libraries' telemetry, bars and advice away; let any character be printed.

    Threads that have nothing to do sleep. By default those of OpenMP, which torch uses, spin while
    they wait for each other: a third of the processor time of a run, far more on a busy machine.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch is imported
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ["MPLBACKEND"] = "agg"  # we open no window, whatever is set
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not epoch.isdecimal() or len(epoch) > DIGITS:
        del os.environ["SOURCE_DATE_EPOCH"]  # libraries fail at what is no time
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _open_closed() -> None:
    """Let no file of ours get the number of a closed stream, and libraries' prints with it.

    What goes to a closed stderr is not wanted; to write to a closed stdout fails.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def lost_output() -> bool:
    """Whether stdout could not be written, which is said; what it still holds is dropped."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter would try again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else its reader went away
            complain(f"cannot write to stdout: {error.strerror}")
        return True
    return False


def refusal(error: Exception) -> str:
    """What the system or the place is at fault for, in words; "" for what may be our error."""
    try:
        os.getcwd()
    except OSError:
        return "the working folder was deleted, or cannot be read: go to another one"
    if isinstance(error, UnicodeEncodeError) and not error.object.isprintable():
        what = shortened(printable(error.object))[:200]
        return f"{what!r} is not UTF-8: rename the file, or give the text in UTF-8"
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error):
        return "found no folder for temporary files that can be written; name one with TMPDIR"
    if isinstance(error, ValueError) and str(error).startswith("Number of threads specified"):
        count = os.environ.get("NUMBA_NUM_THREADS", "")
        return f"found {count[:20]!r} as NUMBA_NUM_THREADS; wanted a number above 0, or none at all"
    if not isinstance(error, OSError) or not error.errno or isinstance(error, FileNotFoundError):
        return ""
    where = f"{str(error.filename)[:200]}: " if error.filename else ""
    return f"the system refused: {where}{error.strerror}"


def heads_given(option: str, *names: Head | str) -> tuple[Head, ...]:
    """(layer, head) from 0 of each name; stderr tells what was understood, counted in both ways.

    raises  InputError for what is no head
    """
    heads = tuple(map(head_named, names))
    if heads:
        complain(f"{option} {', '.join(HeadNames(()).both(*head) for head in heads)}")
    return heads


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """A phase whose progress is reported; without a unit it is only noted, not shown."""

    def __init__(self, *, quiet: bool, unit: str = "", title: str = "compute") -> None:
        self.unit, self.title = "" if quiet else unit, title
        self._advance: progress.Advance | None = None
        self._done = 0
        self.done_before: int | None = None  # what was finished before this run began
        self.total: int | None = 0

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show that so much of all is finished; None where nobody knows how much there is."""
        if self.done_before is None:
            self.done_before, self.total = done, total
        if not self.unit:
            return
        if self._advance is None:
            self._done = 0 if total is None else done
            self._advance = progress.begin(self.title, total, self.unit, self._done)
        self._advance(done - self._done)
        self._done = done

    def begin(self, title: str) -> None:
        """Show what follows under another title."""
        self.title, self._advance = title, None

    def __exit__(self, *_: object) -> None:
        self._advance = None


def annotate(corpus: Corpus, *, quiet: bool) -> list[str]:
    """Annotate the plain text of a corpus, where that has not been done.

    quiet    no bar
    returns  for each annotated part a line on who annotated it and where that is kept
    """
    from headscope.corpus import AnnotatedCorpus, Concatenation

    parts = corpus.corpora if isinstance(corpus, Concatenation) else (corpus,)
    return [_annotate(part, quiet) for part in parts if isinstance(part, AnnotatedCorpus)]


def _annotate(part: AnnotatedCorpus, quiet: bool) -> str:
    with ProgressBar(quiet=quiet, unit="documents", title="annotate") as bar:
        kept = part.prepare(bar)
    by = f"annotated by {part.annotator.name} ({part.annotator.version})"
    if kept is not None:
        return f"{by}, kept in {kept}"
    complain(
        "the cache folder (XDG_CACHE_HOME) cannot be written: the annotation is kept in memory, "
        "and is made again in the next run"
    )
    return f"{by}, not kept"


def size_of(model: Mapping[str, Any]) -> str:
    """`bert: 12 layers × 12 heads`, of a manifest's `model`."""
    size = model.get("size") or grid_size(model["layers"], model["heads"])
    return f"{model['name']}: {size}"


def reading_lines(
    counts: Mapping[str, Any], bar: ProgressBar, notes: Sequence[str]
) -> Iterator[str]:
    """What was resumed, cut into windows, unknown, and left out and why."""
    from headscope.corpus.contents import unknown_words
    from headscope.report.run_facts import alike

    yield from notes
    if bar.done_before:
        yield f"resumed: {bar.done_before} of {bar.total} shards were finished before"
    yield from (f"equal documents: {one}" for one in alike(counts))
    if counts["windowed"]:
        yield f"windowed: {how_many(counts['windowed'], 'passage')} longer than an input"
    if unknown := unknown_words(counts):
        yield f"unknown: {unknown}"
    if lost := counts.get("without_token"):
        yield f"words: {lost} share a token with the word before them and are not told of"
    for reason, entry in counts["reasons"].items():
        names = (name if len(name) <= 60 else name[:59] + "…" for name in entry["first"][:3])
        more = ", …" if entry["total"] > 3 else ""
        yield f"skipped: {entry['total']} × {reason} ({', '.join(names)}{more})"
