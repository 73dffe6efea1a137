"""What do the linguistic analyses cost on a treebank, beside surface and entropy?

python -m benchmarks.language [--rounds N] [--threads N] [--examples N] [--clock cpu]

Sentences of a treebank's lengths with random trees of 45 relations, on a random model of BERT-base
shape; one interleaved run, see `benchmarks.atlas`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import torch

from benchmarks.inputs import Inputs, bert, treebank
from benchmarks.pipelines import Streamed, bare, fastest
from benchmarks.timing import Row, interleave, options, table
from headscope.corpus import Example, Word
from headscope.model.linears import linears
from headscope.model.threads import threads_of
from headscope.run.memory import keep_few_products, keep_freed_memory

RELATIONS = 45
SPLIT = 0.08  # of the words have two tokens (Clark et al. 2019, §4.1)
ALONE = "surface + entropy"
TAGS = ("NN", "VBZ", "PRP", "DT", "JJ", "IN")


def annotated(inputs: Inputs) -> Inputs:
    """The same inputs with words, tags and trees."""
    draw = np.random.default_rng(0)
    examples = [_annotated(example, draw) for example in inputs.examples]
    return replace(inputs, examples=examples)


def _annotated(example: Example, draw: np.random.Generator) -> Example:
    content = ~example.special
    starts = draw.random(len(example)) > SPLIT
    starts[1:] |= example.special[:-1]
    index = np.where(content, np.cumsum(starts & content) - 1, -1)
    index[content] -= index[content][0]
    count = int(index.max()) + 1
    heads = draw.integers(0, count, count)
    heads[0] = -1
    labels = draw.zipf(1.5, count) % RELATIONS
    tags = draw.choice(TAGS, count)
    words = tuple(
        Word(f"w{n}", xpos=str(tag), head=int(head), relation=f"r{name}")
        for n, (tag, head, name) in enumerate(zip(tags, heads, labels, strict=True))
    )
    return replace(example, words=words, word_index=index)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    given = options("language", __doc__, examples=256, threads=None).parse_args(arguments)
    keep_freed_memory()
    keep_few_products()
    with threads_of(given.threads), ExitStack() as stack:
        inputs = annotated(treebank(given.examples))
        rows = pipelines(inputs, stack)
        interleave(rows, rounds=given.rounds, clock=given.clock)
    print(f"{len(inputs.examples)} sentences, {inputs.shown:,} tokens\n")
    print(table(rows, stock=ALONE, fast="B"))


def pipelines(inputs: Inputs, stack: ExitStack) -> list[Row]:
    """A bare forward pass, surface and entropy, and each linguistic analysis with them."""
    network = bert()
    network.set_attn_implementation("sdpa")
    with torch.inference_mode():
        kind = fastest(network, inputs)
    stack.enter_context(linears(network, kind))
    alone: dict[str, dict[str, object]] = {"surface": {}, "entropy": {}}
    together = {"dependency": {}, "features": {}, "cls_attention": {}, "pairs": {}}
    wanted = {
        ALONE: (alone, {}),
        "… + dependency": ({**alone, "dependency": {}}, {ALONE: 1.15}),
        "… + features, cls_attention, pairs": ({**alone, **together}, {}),
        "dependency by weighted_norm": (
            {**alone, "dependency": {"measure": "weighted_norm"}},
            {},
        ),
    }
    bare_row = Row("B", lambda: bare(network, inputs), inputs.shown)
    return [
        bare_row,
        *(
            Row(name, Streamed(network, inputs, options), inputs.shown, limits)
            for name, (options, limits) in wanted.items()
        ),
    ]


if __name__ == "__main__":
    main()
