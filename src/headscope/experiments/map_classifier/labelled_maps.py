"""The maps that were labelled by eye: their classes, and where they come from.

The bundled set: 1,469 real maps of six models on five kinds of text. 720 were drawn evenly over
layers, 120 for their weight within segments, and 629 by what an earlier classifier guessed, because
blocks, diagonals and heterogeneous maps are rare. Two annotators labelled every map and saw nothing
but its picture; where they disagree, a third look decided.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.measure_network import Seen, seen_bytes
from headscope.errors import InputError
from headscope.experiments.map_classifier.annotation_session import Session

LEVELS = 15  # in which the bundled pictures are kept, to be small


@dataclass(frozen=True)
class LabelledMaps:
    """Maps as the classifier sees them, with their labels.

    seen        [map, 2, SIDE, SIDE]
    labels      [map] places in NAMES
    models      [map] names
    provenance  one row a map: model, sha256, text, example, layer, head, tokens, boundary; how it
                was drawn; what each annotator said (first, second, third; "" for nothing); and the
                label
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


def bundled_labels() -> LabelledMaps:
    """The labelled set that comes with headscope."""
    folder = resources.files("headscope.experiments.map_classifier") / "data"
    with (folder / "labelled.npz").open("rb") as file, np.load(file, allow_pickle=False) as kept:
        seen: Seen = kept["seen"] * np.uint8(255 // LEVELS)
    rows = list(csv.DictReader((folder / "labelled.csv").read_text("utf-8").splitlines()))
    return _labelled(seen, rows)


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
    return _labelled(seen, rows)


def joined(parts: Sequence[LabelledMaps]) -> LabelledMaps:
    """Several sets as one."""
    seen = np.concatenate([part.seen for part in parts])
    return _labelled(seen, [row for part in parts for row in part.provenance])


def _labelled(seen: Seen, rows: list[dict[str, str]]) -> LabelledMaps:
    labels = np.array([NAMES.index(row["label"]) for row in rows], np.int64)
    return LabelledMaps(seen, labels, [row["model"] for row in rows], rows)
