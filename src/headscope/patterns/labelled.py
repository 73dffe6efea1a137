"""Which maps were labelled by eye, with which class, and where do they come from?

The bundled set: 840 real maps of six models on five kinds of text, 720 drawn evenly over layers and
120 chosen for their weight within segments, because blocks are rare. Two annotators, who saw
nothing but the pictures; a third look decides where they disagree, and for the maps that were
called vertical + diagonal or block before the definition of a block was as it is now.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

from headscope.patterns.classes import NAMES
from headscope.patterns.resize import Seen


@dataclass(frozen=True)
class Labelled:
    """Maps as the classifier sees them, with their labels.

    seen        [map, 2, SIDE, SIDE]
    labels      [map] places in NAMES
    models      [map] names
    provenance  one row a map: model, sha256, text, example, layer, head, tokens, boundary; and what
                each annotator said (first, second, third; "" for nothing), and the label
    """

    seen: Seen
    labels: npt.NDArray[np.int64]
    models: list[str]
    provenance: list[dict[str, str]]

    def __len__(self) -> int:
        return len(self.labels)

    def said(self, annotator: str) -> dict[int, str]:
        """number → label of "first", "second" or "third"."""
        rows = enumerate(self.provenance)
        return {number: row[annotator] for number, row in rows if row[annotator]}


def bundled_labels() -> Labelled:
    """The labelled set that comes with headscope."""
    folder = resources.files("headscope.patterns") / "data"
    with (folder / "labelled.npz").open("rb") as file, np.load(file, allow_pickle=False) as kept:
        seen: Seen = kept["seen"]
    rows = list(csv.DictReader((folder / "labelled.csv").read_text("utf-8").splitlines()))
    labels = np.array([NAMES.index(row["label"]) for row in rows], np.int64)
    return Labelled(seen, labels, [row["model"] for row in rows], rows)
