"""Do labels hold of the same texts as longer inputs, or do they say of which lengths they are?

    python -m benchmarks.lengths [MODEL]

The demo's texts are read as sentences, and again as whole documents. A head that has labels of
sentences agrees where each of them is a label of documents, too, or names the lengths that it is
of. Prints how many agree, and what the others say.
"""

import sys
from dataclasses import replace

import headscope as hs
from headscope.core.head_labels import head_labels
from headscope.core.results import place_name
from headscope.corpus import Document, Passage, Word

NAMES = (
    "surface", "entropy", "norms", "sinks", "distance", "patterns", "dependency", "features",
    "pairs",
)  # fmt: skip


def passages() -> tuple[hs.MemoryCorpus, hs.MemoryCorpus]:
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
    return hs.MemoryCorpus(sentences), hs.MemoryCorpus(wholes)


def main() -> None:
    """Read both, compare, print."""
    model = hs.load(sys.argv[1] if len(sys.argv) > 1 else "demo")
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
            print(f"{place_name(*place)}: {label.label}: no label of whole documents")
    print(f"{agree} of {len(labelled)} labelled heads agree ({agree / len(labelled):.1%})")


if __name__ == "__main__":
    main()
