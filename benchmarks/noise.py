"""What is said of networks that know nothing?

python -m benchmarks.noise [--documents N] [--control none|random]

Nine networks of the demo's architecture: random weights, drawn anew at five scales, and the demo's
own, the entries of each tensor dealt out anew in four ways; and the demo itself. Printed of each:
how many of its heads have a label, which labels, what is said of clusters and of layers, how many
of Vig's six claims about neurons are answered (yes, or the opposite), and the first sentence of
its report. At most 5 % of the heads of the nine may be labelled.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from transformers import PreTrainedModel

import headscope as hs
from headscope.analyses.divergence.figure_cluster_checks import verdict
from headscope.analyses.divergence.figure_layers import layers_verdict
from headscope.analyses.neurons.figure import verdict as neuron_verdict
from headscope.core.head_labels import head_labels
from headscope.core.headline import headline
from headscope.run.control import shuffled, untrained

SCALES = (0.5, 1.0, 2.0, 4.0, 8.0)
SHUFFLES = 4
ANSWERED = r"(yes|no, the opposite) \(ρ"
SEED = 100  # of the first network; the control has its own
ANALYSES = (
    "surface", "entropy", "norms", "patterns", "divergence", "dependency", "features",
    "coreference", "neurons",
)  # fmt: skip


def networks(network: PreTrainedModel) -> Iterator[tuple[str, PreTrainedModel]]:
    """The nine networks without knowledge, then the network itself, by name."""
    for at, scale in enumerate(SCALES):
        drawn = untrained(network, seed=SEED + at)
        with torch.no_grad():
            for tensor in drawn.parameters():
                if tensor.ndim > 1:
                    tensor.mul_(scale)
        yield f"random weights × {scale:g}", drawn
    for at in range(SHUFFLES):
        yield f"shuffled {at + 1}", shuffled(network, seed=2 * SEED + at)
    yield "demo", network


def row(name: str, run: hs.Run, seconds: float) -> str:
    """A line of the table."""
    found = list(head_labels(run.tree).values())
    kinds = Counter(label.kind for one in found for label in one.labels)
    words = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "–"
    labelled = sum(bool(one.labels) for one in found)
    clusters = "yes" if verdict(run.tree).startswith("Heads do fall") else "no"
    alike = "yes" if layers_verdict(run.tree).startswith("Heads of one layer are more") else "no"
    answers = re.findall(ANSWERED, neuron_verdict(run.tree))
    return (
        f"| {name} | {labelled} of {len(found)} | {words} | {clusters} | {alike} | "
        f"{', '.join(answers) or 'none'} | {seconds:.0f} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Read all networks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--control", default="random")
    given = parser.parse_args(arguments)
    demo = hs.load("demo")
    print(
        "| network | labelled | labels | clusters | layers alike | neuron claims answered | s |\n"
        "|---|--:|---|---|---|---|--:|"
    )
    sentences = []
    for name, network in networks(demo.network):
        start, model = time.perf_counter(), hs.load(network, tokenizer=demo.tokenizer)
        run = hs.atlas(
            model, hs.demo_corpus(), analyses=ANALYSES, limit=given.documents, replicates=50,
            control=given.control, execution=hs.Execution(linears="stock", threads=1),
        )  # fmt: skip
        print(row(name, run, time.perf_counter() - start), flush=True)
        sentences.append(f"{name}: {headline(run.tree)}")
    print("\n" + "\n".join(sentences))


if __name__ == "__main__":
    main()
