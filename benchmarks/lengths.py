"""Do labels hold of the same texts as longer inputs, or do they say of which lengths they are?

    python -m benchmarks.lengths [MODEL] [--cost TIMES]

The demo's texts are read as sentences, and again as whole documents. A head that has labels of
sentences agrees where each of them is a label of documents, too, or names the lengths that it is
of. Prints how many agree, and what the others say.

--cost  prints instead what it costs to tell lengths apart: the CPU time of an atlas of the demo's
        texts, read so many times as other documents, over that of the same without bands
"""

import argparse
from dataclasses import replace
from statistics import median
from unittest.mock import patch

import headscope as hs
from benchmarks.timing import Row, interleave
from headscope.claims.head_labels import head_labels
from headscope.corpus import Document, Passage, Word
from headscope.model.threads import threads_of
from headscope.run.readings import CorpusReading

NAMES = (
    "surface",
    "entropy",
    "norms",
    "sinks",
    "distance",
    "patterns",
    "dependency",
    "features",
    "pairs",
)


def passages() -> tuple[hs.corpus.MemoryCorpus, hs.corpus.MemoryCorpus]:
    """The demo's sentences with trees; and each document as one input with all of its trees."""
    sentences, wholes = [], []
    for document in hs.demo_corpus():
        parts = [p for p in document.passages if any(word.relation for word in p.words or ())]
        words = list[Word]()
        for part in parts:
            start = len(words)
            words += [
                replace(w, head=w.head + start if w.head >= 0 else -1) for w in part.words or ()
            ]
        sentences.append(Document(document.id, tuple(parts)))
        wholes.append(Document(document.id, (Passage(document.id, words=tuple(words)),)))
    return hs.corpus.MemoryCorpus(sentences), hs.corpus.MemoryCorpus(wholes)


def cost(model: hs.Model, times: int, *, rounds: int) -> None:
    """Print CPU seconds with bands over those without, in turns in one process and one thread."""
    corpus = hs.corpus.MemoryCorpus(
        [replace(one, id=f"{n} {one.id}") for n in range(times) for one in hs.demo_corpus()]
    )
    execution = hs.Execution(threads=1)

    def apart() -> None:
        hs.atlas(model, corpus, execution=execution)

    def together() -> None:
        with patch.object(CorpusReading, "bands", []):
            apart()

    rows = Row("together", together, 1), Row("apart", apart, 1)
    with threads_of(1):
        interleave(rows, rounds=rounds, clock="cpu")
    ratios = rows[1].ratios(rows[0])
    print(
        f"{model.name}, the demo {times} times, {rounds} pairs: {median(rows[0].seconds):.1f} CPU "
        f"s; with bands x {median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
    )


def main() -> None:
    """Read both, compare, print; or what it costs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", default="demo")
    parser.add_argument("--cost", type=int, metavar="TIMES")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    model = hs.load(options.model)
    if options.cost:
        cost(model, options.cost, rounds=options.rounds)
        return
    short, long = (
        head_labels(hs.atlas(model, corpus, analyses=NAMES).tree) for corpus in passages()
    )
    labelled = {place: one.labels for place, one in short.items() if one.labels}
    agree = 0
    for place, labels in labelled.items():
        there = {(label.kind, label.name) for label in long[place].labels}
        lost = [one for one in labels if not one.where and (one.kind, one.name) not in there]
        agree += not lost
        for label in lost:
            print(f"{model.shape.names.head(*place)}: {label.label}: no label of whole documents")
    print(f"{agree} of {len(labelled)} labelled heads agree ({agree / len(labelled):.1%})")


if __name__ == "__main__":
    main()
