"""What does the command line show while text is annotated, and say of where that is kept?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.cli.terminal import complain

if TYPE_CHECKING:
    from headscope.corpus import AnnotatedCorpus, Corpus


def annotate(corpus: Corpus, *, quiet: bool) -> list[str]:
    """Annotates the plain text of a corpus, where that has not been done.

    quiet    no bar
    returns  for each annotated part a line on who annotated it and where that is kept
    """
    return [_annotate(part, quiet=quiet) for part in _annotated(corpus)]


def _annotated(corpus: Corpus) -> list[AnnotatedCorpus]:
    from headscope.corpus import AnnotatedCorpus, Concatenation

    parts = corpus.corpora if isinstance(corpus, Concatenation) else (corpus,)
    return [part for part in parts if isinstance(part, AnnotatedCorpus)]


def _annotate(part: AnnotatedCorpus, *, quiet: bool) -> str:
    with _Bar(quiet=quiet or not sys.stderr.isatty()) as bar:
        kept = part.prepare(bar)
    by = f"annotated by {part.annotator.name} ({part.annotator.version})"
    source = part.source
    if kept is not None and source is not None and kept.parent == source.parent:
        return f"{by}, kept in {kept}"
    beside = source.parent if source is not None else Path()
    if kept is not None:
        complain(f"{beside} cannot be written: the annotation is kept in {kept}")
        return f"{by}, kept in {kept}"
    complain(
        f"neither {beside} nor the cache folder can be written: the annotation is kept in memory, "
        "and is made again in the next run"
    )
    return f"{by}, not kept"


class _Bar:
    """A counter of documents on stderr, from the first one on."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.bar: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __call__(self, count: int) -> None:
        if self.quiet:
            return
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(desc="annotating", unit=" documents", file=sys.stderr)
        self.bar.update(count - self.bar.n)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()
