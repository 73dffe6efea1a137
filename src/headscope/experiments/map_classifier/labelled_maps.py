"""The maps that annotators see, drawn from models, and their labels.

The bundled set: 1,218 real maps, whole, of six networks (and of one of them fine-tuned) on single
sentences and on pairs. Two annotators labelled every map, saw its picture, which rows and columns
are special or punctuation and how much weight they hold, and where a second sentence begins, and
nothing of model, layer, head, text or each other; where they disagree, a third look decided. 688 of
them were labelled before, from the picture alone, when any column made a map vertical.
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import resources
from itertools import islice
from typing import Any

import numpy as np

from headscope.analyses.patterns.classes import NAMES, PUNCTUATION, SPECIAL, Kinds, kinds_of
from headscope.analyses.patterns.map_features import Features, features
from headscope.analyses.patterns.measure_network import Seen, seen_bytes
from headscope.core.accumulators import Ints, generator
from headscope.corpus import Corpus, Encoder, Example
from headscope.errors import CorpusError, InputError
from headscope.experiments.map_classifier.annotation_session import Drawn, Map, Session
from headscope.model.layer import LayerView
from headscope.model.model import Model, load, show_layers
from headscope.tasks.task_request import Loading

LEVELS = 255  # of the root of a weight, in which the bundled maps are kept
ANNOTATIONS = ("first", "second", "third", "label")


@dataclass(frozen=True)
class MarkedMap:
    """A map with the categories of its tokens.

    map     [query, key]
    kinds   [token] see `map_features`; None where it is not known
    second  the first token of the second sentence; 0 where there is one
    """

    map: Features
    kinds: Kinds | None
    second: int

    def features(self) -> Features:
        """[feature] the map's features for the classifier of marked columns."""
        kinds = self.kinds
        if kinds is None:
            raise InputError(
                "found maps of a session that does not say which tokens are special; wanted a "
                "session drawn by this version, or --columns any"
            )
        numbers: Features = features(self.map[None], kinds, self.second)[0]
        return numbers


@dataclass(frozen=True)
class LabelledMaps:
    """Maps with their labels.

    maps        the maps
    provenance  one row a map: model and the network that it came from, sha256, text, example,
                layer, head, tokens, boundary; how it was drawn; what each annotator said (first,
                second, third; "" for nothing); and the label
    """

    maps: list[MarkedMap]
    provenance: list[dict[str, str]]

    @cached_property
    def seen(self) -> Seen:
        """[map, 2, SIDE, SIDE] the input of the classifier of any columns."""
        return np.concatenate([seen_bytes(one.map[None]) for one in self.maps])

    @cached_property
    def labels(self) -> Ints:
        """[map] places in NAMES."""
        return np.array([NAMES.index(row["label"]) for row in self.provenance], np.int64)

    @property
    def models(self) -> list[str]:
        """[map] names."""
        return [row["model"] for row in self.provenance]

    @property
    def origins(self) -> list[str]:
        """[map] the network that a model was fine-tuned from, or the model itself."""
        return [row.get("origin") or row["model"] for row in self.provenance]

    def __len__(self) -> int:
        return len(self.provenance)


def bundled_labels(columns: str = "special") -> LabelledMaps:
    """The labelled set that comes with the source of headscope.

    columns  "special": labels by the definitions of `classes.CLASSES`; "any": the maps that were
             labelled by all their columns too, with those labels
    raises   InputError in an installed package, which has no such maps: only a checkout has
    """
    folder = _maps_folder()
    if not (folder / "labelled.npz").is_file():
        raise InputError(
            "the labelled maps are not installed: they are in the source distribution of "
            "headscope; run this in a checkout of it (pip install -e .), or learn from your own "
            "maps: --labels SESSION --without-bundled"
        )
    with (folder / "labelled.npz").open("rb") as file, np.load(file, allow_pickle=False) as kept:
        roots, kinds = kept["roots"], kept["kinds"]
        sizes, largest = kept["sizes"].astype(int), kept["largest"]
    rows = list(csv.DictReader((folder / "labelled.csv").read_text("utf-8").splitlines()))
    cells = np.split(roots, np.cumsum(sizes**2)[:-1])
    tokens = np.split(kinds, np.cumsum(sizes)[:-1])
    maps = []
    for row, n, flat, kind, scale in zip(rows, sizes, cells, tokens, largest, strict=True):
        weights = (flat.reshape(n, n) / np.float32(LEVELS)) ** 2 * scale  # [query, key]
        maps.append(MarkedMap(weights.astype(np.float32), kind, max(int(row["boundary"]), 0)))
    both = LabelledMaps(maps, rows)
    if columns == "special":
        return both
    there = [place for place, row in enumerate(rows) if row["any_label"]]
    again = [rows[place] | {k: rows[place][f"any_{k}"] for k in ANNOTATIONS} for place in there]
    return LabelledMaps([maps[place] for place in there], again)


def _maps_folder() -> Any:
    return resources.files(__package__) / "data"


def labels_of(session: Session) -> LabelledMaps:
    """The maps of a session that all annotators who labelled them put into one class.

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
            f"{session.folder}: found no map on whose label all annotators agree; wanted some: "
            f"headscope patterns annotate -o {session.folder}"
        )
    maps = [
        MarkedMap(
            session.map(number).astype(np.float32),
            session.kinds(number),
            max(session.boundary(number), 0),
        )
        for number in agreed
    ]
    rows = [{**session.provenance[number], "label": next(iter(said[number]))} for number in agreed]
    return LabelledMaps(maps, rows)


def joined(parts: Sequence[LabelledMaps]) -> LabelledMaps:
    """Several sets as one."""
    return LabelledMaps(
        [one for part in parts for one in part.maps],
        [row for part in parts for row in part.provenance],
    )


# --- maps to be labelled ----------------------------------------------------------------------

LEAST_TOKENS = 10  # a smaller map shows no pattern


def draw_from_all(
    models: Sequence[str],
    texts: Mapping[str, Corpus],
    count: int,
    loading: Loading,
    *,
    limit: int,
    max_length: int,
    seed: int,
) -> list[Drawn]:
    """So many maps, drawn evenly from models and texts; `limit` documents of each text are read."""
    drawn: list[Drawn] = []
    for place, name in enumerate(models):
        model = load(name, **asdict(loading))
        encoder = Encoder(
            model.tokenizer,
            model_limit=model.limit,
            has_segments=True,  # for every model: the eye sees second segments in maps of all
            max_length=min(max_length, model.limit),
            seed=seed,
        )
        examples = {}
        for text, corpus in texts.items():
            documents = islice(corpus, limit)
            examples[text] = [one for document in documents for one in encoder.encode(document)]
            if not examples[text]:
                raise CorpusError(f"{text}: it has no input for {name}")
        some = (count + place) // len(models)
        drawn += draw(model, examples, name=name, count=some, seed=seed)
    return drawn


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
        kinds = kinds_of(example, model.vocabulary.marks)
        marked = [tuple(np.flatnonzero(kinds == k).tolist()) for k in (SPECIAL, PUNCTUATION)]
        for layer, head, kept in _maps(model, example, heads):
            number = model.shape.names.number(layer)
            drawn.append(Drawn(*origin, number, head, boundary, kept, *marked))
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
