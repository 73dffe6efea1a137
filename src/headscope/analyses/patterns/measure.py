"""To which class do the maps of each head belong: vertical, diagonal, both, block, or none of
these?

Kovaleva et al. (2019), section 4.1: a network that learned from maps labelled by eye tells every
map's class. Theirs was not published; ours are `patterns.measure_marked`, in which only columns of
special tokens and of punctuation make a map vertical, as in the paper, and, as the option
`columns=any`, `patterns.measure_network`, in which any column does. Their cards say how far they
can be trusted.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr

from headscope.analyses.patterns import QUESTION
from headscope.analyses.patterns.classes import (
    NAMES,
    PUNCTUATION,
    SPECIAL,
    kinds_of,
    second_of,
)
from headscope.analyses.patterns.map_features import COUNT, features
from headscope.analyses.patterns.measure_marked import read_marked
from headscope.analyses.patterns.measure_network import SIDE, read_classifier, seen
from headscope.core.accumulators import Bools, Float64, TopRecords
from headscope.core.intervals import SHARE, estimate_share
from headscope.core.results import Variable, labelled
from headscope.corpus.document import Example
from headscope.corpus.stored_inputs import TOKENS, folded, places
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, AnalysisPart, Scope, ratio_of

AT_ONCE = 24  # maps: what their layers hold stays in the cache, which halves the time
LEAST_TOKENS = 10  # a smaller map shows no pattern: none was labelled
PLACES = TOKENS.stop - 1  # at which an input is shown; a longer one is folded
RANKS = 3  # maps of a head
MOST_HEADS = 400  # of larger models, one map of each class is kept
STEPS = 255  # of the square root of a weight, in which maps are kept
ROUND = 1e-4  # of a score: what a batch of another shape changes decides nothing
SECOND = 0.25  # share from which the second class of a head is shown too
COLUMNED = [NAMES.index("vertical"), NAMES.index("vertical_diagonal")]
RECORD = np.dtype(
    [
        ("score", "f8"),
        ("key", "u8"),
        ("token", "i4", PLACES),
        ("count", "i4", PLACES),
        ("map", "u1", (PLACES, PLACES)),
    ]
)


class Teller(Protocol):
    """Classifies maps.

    sha256     of its weights
    threshold  probability below which a map gets no class
    """

    sha256: str
    threshold: float

    def classify(
        self, maps: list[torch.Tensor], examples: Sequence[Example], marks: frozenset[int]
    ) -> tuple[Float64, Bools]:
        """[example, head, class] probabilities; [example, head] more on punctuation than special.

        maps   of each example [head, query, key], without padding
        marks  ids of tokens of punctuation alone
        """
        ...


class Patterns(Analysis, question=QUESTION):
    """How often the maps of a head are of each class, how sure the classifier is, and examples.

    columns       which make a map vertical: of "special" tokens and punctuation, or "any"
    classifier    folder of another classifier (`headscope patterns train`); "" for the bundled one
    least_tokens  inputs of fewer are left out
    """

    costly: ClassVar[bool] = True

    def __init__(
        self,
        scope: Scope,
        *,
        columns: str = "special",
        classifier: str = "",
        least_tokens: int = LEAST_TOKENS,
    ) -> None:
        super().__init__(scope)
        self.checked(columns=columns, least_tokens=least_tokens)
        self.least_tokens = least_tokens
        self.columns = columns
        self.teller: Teller = (AnyColumns if columns == "any" else MarkedColumns)(classifier)
        # Of the classes; then maps without one; then columns on punctuation.
        self.maps = self.sums(scope.layers, scope.heads, len(NAMES) + 2)
        self.sure = self.sums(scope.layers, scope.heads)
        self.count = self.sums()
        self.typical = TypicalMapRecords(scope, NAMES)

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Tell the class of every map of the layer."""
        rows = np.flatnonzero(batch.lengths >= self.least_tokens)
        if not len(rows):
            return
        lengths = batch.lengths[rows]
        maps = [layer.attention[row, :, :n, :n] for row, n in zip(rows, lengths, strict=True)]
        probabilities, of_punctuation = self.teller.classify(
            maps, [batch.examples[row] for row in rows], batch.vocabulary.marks
        )
        label, largest = probabilities.argmax(-1), probabilities.max(-1)  # [example, head]
        sure = largest >= self.teller.threshold
        is_label = (np.arange(len(NAMES)) == label[..., None]) & sure[..., None]
        of_punctuation &= is_label[..., COLUMNED].any(-1)
        counted = np.concatenate([is_label, ~sure[..., None], of_punctuation[..., None]], -1)
        groups = batch.groups[rows]
        self.maps.add(counted * 1.0, groups, at=(layer.index,))
        self.sure.add(largest, groups, at=(layer.index,))
        if layer.index == 0:
            self.count.add(np.ones(len(rows)), groups)
        for place, row in enumerate([] if self.scope.control else rows.tolist()):
            scores = probabilities[place] * is_label[place]
            self.typical.add(layer.index, batch.examples[row], scores, maps[place])

    def result(self) -> xr.Dataset:
        """share[layer, head, pattern], unsure, punctuation, confidence, and typical maps."""
        counted = self.share(self.maps, self.count)  # [layer, head, class | unsure | punctuation]
        share = counted.last(slice(len(NAMES)))
        draws = ratio_of(self.maps, self.count)[..., : len(NAMES)]
        maps = self.count.sums * self.scope.heads  # [replicate + 1] of a layer
        by_layer = estimate_share(draws.mean(2), maps[:, None, None])
        whole = estimate_share(draws.mean((1, 2)), maps[:, None] * self.scope.layers)
        sure = self.mean(self.sure, self.count, bounds=SHARE)
        of_class = "share of maps that are of the class"
        of_head = ("layer", "head")
        rows = {
            "share": (share, (*of_head, "pattern"), of_class),
            "layer_share": (by_layer, ("layer", "pattern"), f"{of_class}, mean over heads"),
            "model_share": (whole, ("pattern",), f"{of_class}, mean over all heads"),
            "confidence": (sure, of_head, "mean probability of the likeliest class"),
        }
        if self.columns == "special":
            rows["unsure"] = (
                counted.last(-2),
                of_head,
                "share of maps of which no class is told",
            )
            rows["punctuation"] = (
                counted.last(-1),
                of_head,
                "share of maps that are vertical, with a diagonal or without, and whose columns "
                "of punctuation hold more than those of special tokens",
            )
        variables = {
            name: Variable(value, dims, words, "probability", self.source)
            for name, (value, dims, words) in rows.items()
        }
        typical, coords = self.typical.variables(share.value, self.source)
        dataset = labelled({**variables, **typical}, coords={"pattern": NAMES})
        dataset["typical"].encoding = {"zlib": True}  # mostly NaN
        for name in typical:
            dataset[name].attrs["tidy"] = 0  # to be looked at, not to be counted
        told_by = {
            "columns": self.columns,
            "classifier_sha256": self.teller.sha256,
            "least_tokens": self.least_tokens,
        }
        return dataset.assign_coords(coords).assign_attrs(told_by)


class MarkedColumns:
    """Tells classes in which only marked columns make a map vertical."""

    def __init__(self, classifier: str) -> None:
        self.network, self.sha256 = read_marked(classifier)
        self.threshold = float(self.network.threshold)

    def classify(
        self, maps: list[torch.Tensor], examples: Sequence[Example], marks: frozenset[int]
    ) -> tuple[Float64, Bools]:
        """Probabilities, and where punctuation holds more than special tokens; as `Teller`."""
        heads = len(maps[0])
        known = np.empty((len(maps), heads, COUNT), np.float32)
        more = np.empty((len(maps), heads), bool)
        for at, (part, example) in enumerate(zip(maps, examples, strict=True)):
            kinds = kinds_of(example, marks)
            here = part.float().cpu().numpy()
            known[at] = features(here, kinds, second_of(example))
            columns = here.sum(1)  # [head, key]
            marked = (columns[:, kinds == kind].sum(1) for kind in (PUNCTUATION, SPECIAL))
            more[at] = np.greater(*marked)
        probabilities = self.network.classify(known.reshape(-1, COUNT))
        return probabilities.reshape(len(maps), heads, -1), more


class AnyColumns:
    """Classifies maps; any column makes one vertical."""

    def __init__(self, classifier: str) -> None:
        self.network, self.sha256 = read_classifier(classifier)
        self.threshold = 0.0

    def classify(
        self, maps: list[torch.Tensor], examples: Sequence[Example], marks: frozenset[int]
    ) -> tuple[Float64, Bools]:
        """Probabilities, as `Teller`; of punctuation nothing is known."""
        self.network.to(maps[0].device)
        of_head = (len(maps), len(maps[0]), 2, SIDE, SIDE)
        pictures = maps[0].new_empty(of_head, dtype=torch.float32)
        for part, out in zip(maps, pictures, strict=True):
            seen(part.float(), out)
        with torch.inference_mode():
            parts = pictures.flatten(0, 1).split(AT_ONCE)  # type: ignore[no-untyped-call]
            logits = torch.cat([self.network(part) for part in parts])
        shares = logits.double().softmax(-1).view(len(maps), -1, len(NAMES))
        probabilities = to_float64(shares)  # [example, head, class]
        return probabilities, np.zeros(probabilities.shape[:2], bool)


class TypicalMapRecords(AnalysisPart):
    """The maps of highest score, head by head and class by class."""

    def __init__(self, scope: Scope, classes: Sequence[str]) -> None:
        kept = RANKS if scope.layers * scope.heads <= MOST_HEADS else 1
        self.classes = classes
        self.best = TopRecords.zeros(scope.layers, scope.heads, len(classes), kept, record=RECORD)

    def add(self, layer: int, example: Example, scores: Float64, maps: torch.Tensor) -> None:
        """Keep the maps of one layer for one example that are among the best.

        scores  [head, class]  0 where a map is not of the class
        maps    [head, query, key]  without padding
        """
        name = f"{example.document}\0{example.id}".encode("utf-8", "surrogatepass")
        key = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")
        here = TopRecords(self.best.rows[layer], RECORD)
        rounded = np.round(scores / ROUND) * ROUND
        for head, label in here.wanted(rounded, key).tolist():
            first = places(example)
            kept = folded(maps[head : head + 1].double().cpu().numpy(), first)[0]
            record = np.zeros((), RECORD)
            n = len(first)
            record["score"], record["key"] = rounded[head, label], key
            record["token"][:n] = np.asarray(example.input_ids)[first]
            record["count"][:n] = np.diff(first, append=len(example))
            record["map"][:n, :n] = np.round(np.sqrt(kept.clip(0, 1)) * STEPS)
            here.put((head, label), record)

    def variables(
        self, share: Float64, source: str
    ) -> tuple[dict[str, Variable], dict[str, object]]:
        """typical[layer, head, rank, query, key] and typical_score; and what stands where.

        share  [layer, head, class] how often a head's maps are of each class
        """
        grid = share.shape[:2]
        chosen = np.zeros((*grid, RANKS), RECORD)
        label = np.full((*grid, RANKS), "", object)
        for place in np.ndindex(grid):
            few = _chosen(self.best.records[place], share[place])
            for rank, (of, record) in enumerate(few):
                chosen[*place, rank], label[*place, rank] = record, self.classes[of]
        count = chosen["count"]
        there = (count[..., :, None] > 0) & (count[..., None, :] > 0)
        maps = np.where(there, (chosen["map"] / STEPS) ** 2, np.nan).astype(np.float32)
        scores = np.where(chosen["score"] > 0, chosen["score"], np.nan)
        dims = ("layer", "head", "rank")
        typical = {
            "typical": Variable(
                maps,
                (*dims, "query", "key"),
                f"a typical map, to half a step of 1/{STEPS} of the root",
                "probability",
                source,
            ),
            "typical_score": Variable(
                scores,
                dims,
                "the classifier’s probability of the map’s class",
                "probability",
                source,
            ),
        }
        at = (*dims, "query")
        coords: dict[str, object] = {
            "typical_class": (dims, label.astype(str)),
            "typical_token_id": (at, np.where(count == 1, chosen["token"], -1)),
            "typical_token_count": (at, count, {"long_name": "tokens at a place; 0: no place"}),
        }
        return typical, coords


def _chosen(records: npt.NDArray[np.void], share: Float64) -> Iterator[tuple[int, np.void]]:
    """(class, record) of one head: of its main class, and one of the second if that is frequent."""
    order = np.argsort(-np.nan_to_num(share), kind="stable")
    there = [(int(of), r) for of in order for r in records[of] if r["score"] > 0]
    main = [pair for pair in there if pair[0] == order[0]]
    second = [pair for pair in there if pair[0] == order[1]]
    if second and share[order[1]] >= SECOND:
        main = [*main[: RANKS - 1], second[0]]
    rest = [pair for pair in there if not any(pair[1] is taken[1] for taken in main)]
    yield from [*main, *rest][:RANKS]
