"""The maps that annotators see, drawn from models, and those that they labelled.

The bundled set: 1,469 real maps of six models on five kinds of text. 720 were drawn evenly over
layers, 120 for their weight within segments, and 629 by what an earlier classifier guessed, because
blocks, diagonals and heterogeneous maps are rare. Two annotators labelled every map and saw nothing
but its picture; where they disagree, a third look decided.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import numpy as np

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_network import Seen, seen_bytes
from headscope.core.accumulators import Ints, generator
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.experiments.map_classifier.annotation_session import Drawn, Map, Session
from headscope.model.layer import LayerView
from headscope.model.model import Model, show_layers

LEVELS = 15  # in which the bundled pictures are kept, to be small


@dataclass(frozen=True)
class LabelledMaps:
    """Maps as the classifier sees them, with their labels.

    seen        [map, 2, SIDE, SIDE]
    provenance  one row a map: model, sha256, text, example, layer, head, tokens, boundary; how it
                was drawn; what each annotator said (first, second, third; "" for nothing); and the
                label
    """

    seen: Seen
    provenance: list[dict[str, str]]

    @cached_property
    def labels(self) -> Ints:
        """[map] places in NAMES."""
        return np.array([NAMES.index(row["label"]) for row in self.provenance], np.int64)

    @property
    def models(self) -> list[str]:
        """[map] names."""
        return [row["model"] for row in self.provenance]

    def __len__(self) -> int:
        return len(self.provenance)


def bundled_labels() -> LabelledMaps:
    """The labelled set that comes with headscope."""
    folder = resources.files(__package__) / "data"
    with (folder / "labelled.npz").open("rb") as file, np.load(file, allow_pickle=False) as kept:
        seen: Seen = kept["seen"] * np.uint8(255 // LEVELS)
    rows = csv.DictReader((folder / "labelled.csv").read_text("utf-8").splitlines())
    return LabelledMaps(seen, list(rows))


def labels_of(session: Session) -> LabelledMaps:
    """The maps of a session on whose class all its annotators agree who labelled them.

    raises  InputError if there is none
    """
    by_name = {name: session.labels(name) for name in session.annotators()}
    said = {
        number: {labels[number] for labels in by_name.values() if number in labels}
        for number in range(len(session))
    }
    agreed = [number for number, labels in said.items() if len(labels) == 1]
    if not agreed:
        raise InputError(
            f"{session.folder}: found no map with a label that nobody disputes; wanted some: "
            f"headscope patterns annotate -o {session.folder}"
        )
    seen = np.concatenate([seen_bytes(session.map(number)[None]) for number in agreed])
    rows = [{**session.provenance[number], "label": next(iter(said[number]))} for number in agreed]
    return LabelledMaps(seen, rows)


def joined(parts: Sequence[LabelledMaps]) -> LabelledMaps:
    """Several sets as one."""
    seen = np.concatenate([part.seen for part in parts])
    return LabelledMaps(seen, [row for part in parts for row in part.provenance])


# --- maps to be labelled ----------------------------------------------------------------------

LEAST_TOKENS = 10  # a smaller map shows no pattern


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
    wanted = _wanted(model, long, name=name, count=count, seed=seed)
    drawn: list[Drawn] = []
    for (text, place), heads in sorted(wanted.items()):
        example = long[text][place]
        origin = (name, model.sha256, text, example.document, example.id)
        second = np.flatnonzero(example.segment_ids)
        boundary = int(second[0]) if len(second) else -1
        for layer, head, kept in _maps(model, example, heads):
            drawn.append(Drawn(*origin, model.shape.number(layer), head, boundary, kept))
    return drawn


def _wanted(
    model: Model, texts: Mapping[str, Sequence[Example]], *, name: str, count: int, seed: int
) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """(text, example) → (layer, head): layers in turn, each takes the next kind of text."""
    layers, heads = model.shape.layers, model.shape.heads
    kinds, order = list(texts), generator(seed, "patterns", name).permutation(layers)
    cells = Counter(
        (kinds[(turn % layers + turn // layers) % len(kinds)], int(order[turn % layers]))
        for turn in range(count)
    )
    wanted: dict[tuple[str, int], list[tuple[int, int]]] = {}
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
            wanted.setdefault((text, place // heads), []).append((layer, place % heads))
    return wanted


def _maps(
    model: Model, example: Example, wanted: Sequence[tuple[int, int]]
) -> list[tuple[int, int, Map]]:
    """(layer, head, map) of one example."""
    maps: list[tuple[int, int, Map]] = []
    batch = model.batch([example])
    n = len(example)

    def look(layer: LayerView) -> None:
        for index, head in wanted:
            if index == layer.index:
                part = layer.attention[0, head, :n, :n].float().cpu().numpy()
                maps.append((index, head, part.astype(np.float16)))

    show_layers(model, batch, look)
    return maps
