"""How many tokens does it take until a number, or a label, is known?

python -m benchmarks.stopping TEXT … [--model demo] [--analyses surface,entropy,norms,sinks]
    [--documents heading]

Reads a corpus once, in random order, as a run with --until does, and never stops. After each look
it notes the widest interval of every number and how many labels are open; at the end it prints when
each number was first narrower than 10, 4 and 2 points (±5, ±2, ±1). What the corpus does not reach
is forecast from the last look, in brackets. Of labels it says how many of those that were decided
early are decided otherwise by the whole corpus, whose intervals are plain ones of 95 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import headscope as hs
from headscope.claims.head_labels import head_labels, open_labels
from headscope.core.confidence import more_documents
from headscope.run import corpus_run
from headscope.run.stopping import LABELS, NARROW, Look, Stopping, times_narrower

POINTS = (0.1, 0.04, 0.02)
Labels = dict[tuple[int, int], set[str]]


@dataclass(frozen=True)
class Row:
    """What was known after one look.

    widths  name of a number -> its widest interval
    open    labels, or what may be one: (layer, head, kind, name) of those not decided
    border  of these, such as have a narrow interval
    labels  of each head, by the intervals of the look; without a control
    """

    documents: int
    tokens: int
    widths: Mapping[str, float]
    open: int
    border: int
    labels: Labels


class Watched(Stopping):
    """Notes what is known at each look, and never stops."""

    rows: ClassVar[list[Row]] = []

    def _looked(self, look: Look, results: Mapping[str, Any]) -> Look:
        numbers = {
            f"{group}.{name}": width
            for group, result in results.items()
            for name, width in times_narrower(result, 1.0).items()  # the width, if below 1
            if not group.startswith("bands")
        }
        tree = self.tree(results)
        opened = open_labels(tree)
        border = sum(one.high - one.low <= NARROW for one in opened)
        row = Row(look.documents, look.tokens, numbers, len(opened), border, labels_of(tree))
        self.rows.append(row)
        print(f"{row.tokens:,} tokens, {row.open} labels open", flush=True)
        return look


def labels_of(tree: Any) -> Labels:
    """Kind and name of every label, by head."""
    return {
        head: {f"{one.kind} {one.name}" for one in found.labels}
        for head, found in head_labels(tree).items()
    }


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of Markdown: tokens until each number is narrower than so many points."""
    last = rows[-1]
    yield f"| number | {' | '.join(f'±{50 * width:g} points' for width in POINTS)} |"
    yield "|---|" + "---|" * len(POINTS)
    for name in sorted(last.widths):
        cells = [_reached(rows, name, width) for width in POINTS]
        yield f"| `{name}` | {' | '.join(cells)} |"


def _reached(rows: Sequence[Row], name: str, width: float) -> str:
    last = rows[-1]
    narrow = [row.tokens for row in rows if row.widths.get(name, 1.0) < width]
    if narrow:
        return f"{narrow[0]:,}"
    needed = last.tokens * more_documents(last.widths[name] / width, last.documents)
    return f"({float(f'{needed:.2g}'):,.0f})"


def labels_table(rows: Sequence[Row], whole: Labels) -> Iterator[str]:
    """Lines of Markdown: labels after each look, beside those of the whole corpus."""
    yield "| documents | tokens | open | of these at the border | labels | also of the whole |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        count = sum(map(len, row.labels.values()))
        same = sum(len(some & whole[head]) for head, some in row.labels.items())
        yield f"| {row.documents} | {row.tokens:,} | {row.open} | {row.border} | {count} | {same} |"
    yield f"the whole: {sum(map(len, whole.values()))} labels"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.stopping", description=__doc__)
    parser.add_argument("text", nargs="+")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--analyses", default="surface,entropy,norms,sinks")
    parser.add_argument("--documents", default="blank_line")
    given = parser.parse_args(arguments)
    corpus = hs.corpus.TextCorpus(given.text, documents=given.documents)
    analyses, vars(corpus_run)["Stopping"] = given.analyses.split(","), Watched
    hs.atlas(given.model, corpus, analyses=analyses, until=LABELS, control=None)
    whole = hs.atlas(given.model, corpus, analyses=analyses, control=None)
    for line in (*table(Watched.rows), "", *labels_table(Watched.rows, labels_of(whole.tree))):
        print(line)


if __name__ == "__main__":
    main()
