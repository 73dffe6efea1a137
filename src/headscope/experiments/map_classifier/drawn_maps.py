"""Draws the maps that annotators see, from every layer and kind of text alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from headscope.core.accumulators import generator
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.experiments.map_classifier.annotation_session import Drawn, Map
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import Model, evaluating, forward

LEAST_TOKENS = 10  # a smaller map shows no pattern
Place = tuple[str, int, int, int]  # text, example, layer, head


def draw(
    model: Model, texts: Mapping[str, Sequence[Example]], *, name: str, count: int, seed: int = 0
) -> list[Drawn]:
    """`count` different maps of one model, every layer and every kind of text equally often.

    texts   kind of text -> examples, encoded for the model; those of fewer than LEAST_TOKENS are
            left out
    name    what to call the model
    raises  InputError if there are not as many maps
    """
    long = {text: [e for e in all_ if len(e) >= LEAST_TOKENS] for text, all_ in texts.items()}
    drawn: list[Drawn] = []
    wanted: dict[tuple[str, int], list[tuple[int, int]]] = {}  # of each example: (layer, head)
    for text, place, layer, head in _places(model, long, name=name, count=count, seed=seed):
        wanted.setdefault((text, place), []).append((layer, head))
    for (text, place), heads in sorted(wanted.items()):
        example = long[text][place]
        for layer, head, kept in _maps(model, example, heads):
            drawn.append(
                Drawn(
                    name, model.sha256, text, example.document, example.id, layer, head,
                    _boundary(example), kept,
                )
            )  # fmt: skip
    return drawn


def _places(
    model: Model, texts: Mapping[str, Sequence[Example]], *, name: str, count: int, seed: int
) -> list[Place]:
    """Where the maps are: layers in turn, and each in its turn takes the next kind of text."""
    layers, heads = model.shape.layers, model.shape.heads
    kinds, order = list(texts), generator(seed, "patterns", name).permutation(layers)
    cells = Counter(
        (kinds[(turn % layers + turn // layers) % len(kinds)], int(order[turn % layers]))
        for turn in range(count)
    )
    places: list[Place] = []
    for (text, layer), share in cells.items():
        there = len(texts[text]) * heads
        if share > there:
            raise InputError(
                f"found {there} maps of {name} on {text} in a layer ({len(texts[text])} inputs of "
                f"{LEAST_TOKENS} tokens or more × {heads} heads); wanted {share}: give more text "
                "or fewer --maps"
            )
        rng = generator(seed, "patterns", name, text, str(layer))
        for place in rng.choice(there, size=share, replace=False).tolist():
            places.append((text, place // heads, layer, place % heads))
    return places


def _maps(
    model: Model, example: Example, wanted: Sequence[tuple[int, int]]
) -> list[tuple[int, int, Map]]:
    """(layer, head, map) of one example."""
    maps: list[tuple[int, int, Map]] = []
    batch = Batch.of([example], model.vocabulary, replicates=0, device=model.device)
    n = len(example)

    def look(layer: LayerView) -> None:
        for index, head in wanted:
            if index == layer.index:
                part = layer.attention[0, head, :n, :n].float().cpu().numpy()
                maps.append((index, head, part.astype(np.float16)))

    with (
        evaluating(model.network),
        torch.inference_mode(),
        Instrument(model.network, observers=[look], stacks=[model.shape.stack]),
    ):
        forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
    return maps


def _boundary(example: Example) -> int:
    second = np.flatnonzero(example.segment_ids)
    return int(second[0]) if len(second) else -1
