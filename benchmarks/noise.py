"""What is said of networks that know nothing?

python -m benchmarks.noise [--model MODEL] [--documents N] [--control none|random] [--analyses A,B]
python -m benchmarks.noise --trees TREEBANK.conllu [--model MODEL]

Twenty networks of the demo's architecture, or another model's: random weights, drawn anew at five
scales; the model's own, the entries of each tensor dealt out anew in four ways, and with singular
vectors drawn anew in five, of embeddings too in two; and six after twenty steps of training, at
four rates. At last the model itself. Printed of each: how many of its heads have a label, which
labels, what is said of clusters and of layers, how many of Vig's six claims about neurons are
answered (yes, or the opposite), and the first sentence of its report. At most 5 % of the heads of
the twenty may be labelled, and at most one network may be said to have clusters or like layers.
Then how often the model itself would be called untrained if only one or two of the analyses had
been asked for: never, if it is trained.

With --trees: the model reads a treebank; then the same sentences, each with its own tree, the words
dealt out anew; then with the tree of another of the same length. Printed is how many labels of
relations its heads have.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch
import xarray as xr
from transformers import PreTrainedModel

import headscope as hs
from headscope.analyses.divergence.figure_cluster_checks import verdict
from headscope.analyses.divergence.figure_layers import layers_verdict
from headscope.analyses.neurons.figure import verdict as neuron_verdict
from headscope.claims.control import CONTROL
from headscope.claims.head_labels import head_labels
from headscope.claims.headline import headline
from headscope.claims.length_bands import BANDS
from headscope.claims.question import named
from headscope.claims.reading import Reading
from headscope.corpus import Word
from headscope.run.control import rotated, shuffled, untrained
from headscope.run.plan import encoder_for
from headscope.run.settings import Settings

SCALES = (0.5, 1.0, 2.0, 4.0, 8.0)
SHUFFLES, ROTATIONS = 4, 3
RATES = (5e-4, 1e-3, 1e-3, 2e-3, 2e-3, 3e-3)  # of Adam, for 20 steps
ANSWERED = r"(yes|no, the opposite) \(ρ"
SEED = 100  # of the first network; the control has its own
ANALYSES = (
    "surface",
    "entropy",
    "norms",
    "patterns",
    "divergence",
    "dependency",
    "features",
    "coreference",
    "neurons",
)


def networks(model: hs.Model) -> Iterator[tuple[str, PreTrainedModel]]:
    """The twenty networks without knowledge, then the network itself, by name."""
    network = model.network
    for at, scale in enumerate(SCALES):
        drawn = untrained(network, seed=SEED + at)
        with torch.no_grad():
            for tensor in drawn.parameters():
                if tensor.ndim > 1:
                    tensor.mul_(scale)
        yield f"random weights × {scale:g}", drawn
    for at in range(SHUFFLES):
        yield f"shuffled {at + 1}", shuffled(network, seed=2 * SEED + at)
    for at in range(ROTATIONS):
        yield f"rotated {at + 1}", rotated(network, seed=2 * SEED + at)
    for at in range(2):
        turned = rotated(network, seed=3 * SEED + at)
        turn = torch.nn.init.orthogonal_(torch.empty(2 * (network.config.hidden_size,)))
        with torch.no_grad():
            for module in turned.modules():
                if isinstance(module, torch.nn.Embedding):
                    module.weight.copy_(module.weight @ turn)
        yield f"rotated with its embeddings {at + 1}", turned
    for at, rate in enumerate(RATES):
        yield f"20 steps at {rate:g}", trained(model, rate, seed=SEED + at)
    yield model.name, network


def trained(model: hs.Model, rate: float, *, seed: int, steps: int = 20) -> PreTrainedModel:
    """An untrained network after some steps: which tokens are hidden, or which one comes next?"""
    torch.manual_seed(seed)
    network = untrained(model.network, seed=seed)
    encoder = encoder_for(model, Settings(max_length=64))
    inputs = [e.input_ids for d in hs.demo_corpus() for e in encoder.encode(d) if len(e) >= 16]
    adam, tokens = torch.optim.AdamW(network.parameters(), rate), network.get_input_embeddings()
    causal = model.shape.stack == "decoder"
    for _ in range(steps):
        some = [inputs[at][:16] for at in torch.randint(len(inputs), (8,)).tolist()]
        ids = torch.as_tensor(np.stack(some))
        hidden = torch.rand(ids.shape) < 0.15
        read = ids if causal else ids.masked_fill(hidden, model.tokenizer.mask_token_id or 0)
        vectors = network(input_ids=read)[0]
        if causal:
            vectors, right = vectors[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
        else:
            vectors, right = vectors[hidden], ids[hidden]
        loss = torch.nn.functional.cross_entropy(vectors @ tokens.weight.T, right)
        adam.zero_grad()
        loss.backward()
        adam.step()
    network.train(False)
    return network


def row(name: str, run: hs.Run, seconds: float) -> str:
    """A line of the table."""
    found = list(head_labels(run.tree).values())
    kinds = Counter(label.kind for one in found for label in one.labels)
    words = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "–"
    labelled = sum(bool(one.labels) for one in found)
    divergence, neuron = (Reading(run.tree, named(name)) for name in ("divergence", "neurons"))
    words = (verdict(divergence), layers_verdict(divergence)) if divergence.there else ("", "")
    starts = "Heads do fall", "Heads of one layer are more"
    clusters, alike = (
        "yes" if said.startswith(start) else "no" for said, start in zip(words, starts, strict=True)
    )
    neurons = neuron_verdict(neuron) if neuron.there else ""
    answers = re.findall(ANSWERED, neurons)
    return (
        f"| {name} | {labelled} of {len(found)} | {words} | {clusters} | {alike} | "
        f"{', '.join(answers) or 'none'} | {seconds:.0f} |"
    )


def subsets(tree: xr.DataTree) -> Iterator[xr.DataTree]:
    """The run as it were if only one or two of its analyses had been asked for."""
    every = [str(name) for name in tree.children if name not in (CONTROL, BANDS)]
    for some in (*combinations(every, 1), *combinations(every, 2)):
        left_out = set(every) - set(some)
        yield tree.filter(lambda node, out=left_out: node.name not in out)


Trees = list[tuple[Word, ...]]


def dealt_words(trees: Trees, rng: np.random.Generator) -> Trees:
    """Each sentence has its own tree, whose nodes are dealt out among its words."""
    return [
        _with_tree(words, [words[at] for at in order], np.argsort(order))
        for words in trees
        for order in [rng.permutation(len(words))]
    ]


def others_trees(trees: Trees, rng: np.random.Generator) -> Trees:
    """Each sentence has the tree of another one of the same length, where there is one."""
    by_length: dict[int, list[int]] = {}
    for at, words in enumerate(trees):
        by_length.setdefault(len(words), []).append(at)
    other = {}
    for same in by_length.values():
        dealt = rng.permutation(same)
        other.update(zip(dealt.tolist(), np.roll(dealt, 1).tolist(), strict=True))
    return [
        _with_tree(words, trees[other[at]], np.arange(len(words))) for at, words in enumerate(trees)
    ]


def _with_tree(
    words: Sequence[Word], nodes: Sequence[Word], places: np.ndarray
) -> tuple[Word, ...]:
    """The words with relations and heads of these nodes; places: where a node's head now stands."""
    return tuple(
        replace(word, relation=node.relation, head=int(places[node.head]) if node.head >= 0 else -1)
        for word, node in zip(words, nodes, strict=True)
    )


def report_trees(model: hs.Model, treebank: str) -> None:
    """Prints how many labels of relations there are, by what trees the sentences have."""
    corpus = list(hs.corpus.TreebankCorpus([treebank]))
    passages = [passage for document in corpus for passage in document.passages]
    trees = [passage.words or () for passage in passages]
    ways: dict[str, Callable[[Trees, np.random.Generator], Trees]] = {
        "its own": lambda some, _: some,
        "its own, words dealt out anew": dealt_words,
        "another's of the same length": others_trees,
    }
    print("| tree of each sentence | labels of relations | which |\n|---|--:|---|")
    for name, way in ways.items():
        dealt = iter(way(trees, np.random.default_rng(SEED)))
        documents = [
            replace(d, passages=tuple(replace(p, words=next(dealt)) for p in d.passages))
            for d in corpus
        ]
        run = hs.atlas(
            model,
            hs.corpus.MemoryCorpus(documents),
            analyses=["dependency"],
            execution=hs.Execution(linears="stock", threads=1),
        )
        labels = [
            label.label
            for one in head_labels(run.tree).values()
            for label in one.labels
            if label.kind == "dependency"
        ]
        print(f"| {name} | {len(labels)} | {'; '.join(labels)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read all networks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--control", default="random")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--analyses", default=",".join(ANALYSES))
    parser.add_argument("--trees", help="a treebank (CoNLL-U)")
    given = parser.parse_args(arguments)
    demo = hs.load(given.model)
    if given.trees:
        report_trees(demo, given.trees)
        return
    print(
        "| network | labelled | labels | clusters | layers alike | neuron claims answered | s |\n"
        "|---|--:|---|---|---|---|--:|"
    )
    sentences = []
    for name, network in networks(demo):
        start, model = time.perf_counter(), hs.load(network, tokenizer=demo.tokenizer)
        run = hs.atlas(
            model,
            hs.demo_corpus(),
            analyses=given.analyses.split(","),
            limit=given.documents,
            replicates=50,
            control=given.control,
            execution=hs.Execution(linears="stock", threads=1),
        )
        print(row(name, run, time.perf_counter() - start), flush=True)
        sentences.append(f"{name}: {headline(run.tree)}")
    print("\n" + "\n".join(sentences))
    words = [headline(part) for part in subsets(run.tree)]  # of the last: the model itself
    untrained_ones = sum("untrained model" in one for one in words)
    print(f"\nBy one or two analyses {untrained_ones} of {len(words)} times called untrained")


if __name__ == "__main__":
    main()
