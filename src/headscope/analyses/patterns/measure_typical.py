"""Which few maps of a head are the most typical ones of their class?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from headscope.core.accumulators import Float64
from headscope.core.labelled import Variable
from headscope.core.top_records import TopRecords
from headscope.corpus.document import Example
from headscope.corpus.stored_inputs import TOKENS, folded, places
from headscope.run.analysis import AnalysisPart, Scope

PLACES = TOKENS.stop - 1  # at which an input is shown; a longer one is folded
RANKS = 3  # maps of a head
MOST_HEADS = 400  # of larger models, one map of each class is kept
STEPS = 255  # of the square root of a weight, in which maps are kept
ROUND = 1e-4  # of a score: what a batch of another shape changes decides nothing
SECOND = 0.25  # share from which the second class of a head is shown too
RECORD = np.dtype([
    ("score", "f8"), ("key", "u8"), ("token", "i4", PLACES), ("count", "i4", PLACES),
    ("map", "u1", (PLACES, PLACES)),
])  # fmt: skip


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
        layers, heads = share.shape[:2]
        chosen = np.zeros((layers, heads, RANKS), RECORD)
        label = np.full((layers, heads, RANKS), "", object)
        for layer, head in np.ndindex(layers, heads):
            few = _chosen(self.best.records[layer, head], share[layer, head])
            for rank, (of, record) in enumerate(few):
                chosen[layer, head, rank], label[layer, head, rank] = record, self.classes[of]
        count = chosen["count"]
        there = (count[..., :, None] > 0) & (count[..., None, :] > 0)
        maps = np.where(there, (chosen["map"] / STEPS) ** 2, np.nan).astype(np.float32)
        scores = np.where(chosen["score"] > 0, chosen["score"], np.nan)
        dims = ("layer", "head", "rank")
        typical = {
            "typical": Variable(
                maps, (*dims, "query", "key"),
                f"a typical map, to half a step of 1/{STEPS} of the root", "probability", source,
            ),
            "typical_score": Variable(
                scores, dims, "the classifier’s probability of the map’s class", "probability",
                source,
            ),
        }  # fmt: skip
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
