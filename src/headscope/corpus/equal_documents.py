"""Detect duplicate and near-duplicate documents in one pass over a corpus.

Ten copies of a document are no more evidence than one: intervals take them as one. Of each content
the few lowest hashes of its sequences of tokens are kept (Broder 1997), which tell how much two
have in common; of a large corpus those contents whose lowest hash is lowest. Memory does not grow
with the corpus, and the result does not depend on how it is divided.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import generator, ratio
from headscope.corpus.document import Example

Hashes = npt.NDArray[np.uint64]
SEQUENCE = 8  # ours: tokens
SKETCH = 32  # ours: hashes of a document
NEARLY = 0.8  # ours: of the sequences that either has, those that both have
MOST_HELD = 2048  # ours: contents
MOST_NAMES = 64  # ours: documents of one content that are known by their ids
_FACTORS = np.uint64(0x9E3779B97F4A7C15) ** np.arange(SEQUENCE, dtype=np.uint64)


def content_of(examples: Sequence[Example]) -> npt.NDArray[np.int64]:
    """[token] the content of a document: its tokens without special ones."""
    return np.concatenate([one.input_ids[~one.special] for one in examples])


def content_name(examples: Sequence[Example]) -> str:
    """A name for the content of a document, equal for equal content."""
    content = content_of(examples).astype("<i8").tobytes()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def unit_names(examples: Iterable[Example], listed: Mapping[str, int]) -> list[str]:
    """The name of the document of each example, equal for documents of equal content.

    listed  see `groups_of`: of documents with one place the first lends its name
    """
    if not listed:
        return [one.content or one.document for one in examples]
    first = {place: document for document, place in reversed([*listed.items()])}
    return [
        first[listed[one.document]] if one.document in listed else one.document for one in examples
    ]


def input_name(example: Example) -> str:
    """A name of an input."""
    return f"{example.document}\0{example.id}"


def dealt(
    examples: Sequence[Example], parts: Sequence[int], *, seed: int, purpose: str, fewest: int
) -> tuple[list[int], list[str]]:
    """The part of every input, and the unit that was dealt: documents of one content together.

    parts    go to the units in turn, which stand in random order
    purpose  words that tell this deal from others of the same seed
    fewest   units; of fewer documents, inputs are dealt
    """
    units = unit_names(examples, {})
    if len(set(units)) < fewest:
        units = [input_name(example) for example in examples]
    order = sorted(set(units), key=lambda unit: generator(seed, purpose, unit).random())
    part = {unit: parts[at % len(parts)] for at, unit in enumerate(order)}
    return [part[unit] for unit in units], units


@dataclass
class Content:
    """One content: the ids of the documents that have it, and a count of further ones."""

    sketch: Hashes
    names: dict[str, None]
    further: int = 0

    @property
    def documents(self) -> int:
        """Number of documents with this content."""
        return len(self.names) + self.further

    def add(self, name: str) -> None:
        """Add a document, unless it is there already."""
        if name not in self.names and len(self.names) == MOST_NAMES:
            self.further += 1
        else:
            self.names.setdefault(name)


@dataclass
class EqualDocuments:
    """Contents by name; for a large corpus, a sample of them; `whole`: whether all are stored."""

    held: dict[str, Content] = field(default_factory=dict)
    whole: bool = True

    def consider(self, examples: Sequence[Example]) -> None:
        """Add one document, by all its examples."""
        name = examples[0].content
        if name not in self.held:
            self.held[name] = Content(_sketch(content_of(examples)), {})
        self.held[name].add(examples[0].document)
        self._drop(2 * MOST_HELD)

    def merge(self, after: Self) -> None:
        """Add the contents of later documents."""
        for name, theirs in after.held.items():
            mine = self.held.setdefault(name, Content(theirs.sketch, {}))
            for document in theirs.names:
                mine.add(document)
            mine.further += theirs.further
        self.whole &= after.whole
        self._drop(2 * MOST_HELD)

    def counted(self, documents: int) -> dict[str, Any]:
        """Number of documents, of `copies`, and of `nearly_equal` documents.

        `estimated` stands there where they were counted in a sample.
        """
        self._drop(MOST_HELD)
        every = sum(content.documents for content in self.held.values())
        share = 1.0 if self.whole else documents / max(every, 1)
        copies, near = every - len(self.held), self._near()
        if not copies + near:
            return {}
        counts: dict[str, Any] = {
            "copies": round(copies * share),
            "nearly_equal": round(near * share),
        }
        return counts if self.whole else counts | {"estimated": True}

    def state(self) -> dict[str, Any]:
        """The state, for a file."""
        held = {
            name: [content.sketch.tolist(), list(content.names), content.further]
            for name, content in self.held.items()
        }
        return {"held": held, "whole": self.whole}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Self:
        """The object from its `state`."""
        held = {
            name: Content(np.array(sketch, np.uint64), dict.fromkeys(names), further)
            for name, (sketch, names, further) in state["held"].items()
        }
        return cls(held, state["whole"])

    def _drop(self, most: int) -> None:
        """Keep only the contents with the lowest hashes."""
        if len(self.held) <= most:
            return
        lowest = sorted(self.held, key=lambda name: (self.held[name].sketch[0], name))
        self.held = {name: self.held[name] for name in lowest[:MOST_HELD]}
        self.whole = False

    def _near(self) -> int:
        """Contents that nearly equal another; each is compared only with its neighbours."""
        near, last = set[str](), dict[int, str]()
        for name in sorted(self.held, key=lambda name: (self.held[name].sketch[0], name)):
            own = self.held[name]
            for other in {last[one] for one in own.sketch.tolist() if one in last}:
                theirs = self.held[other]
                if not own.names.keys() & theirs.names.keys() and _common(own, theirs) > NEARLY:
                    near |= {name, other}
            last |= dict.fromkeys(own.sketch.tolist(), name)
        return len(near)


def _common(one: Content, other: Content) -> float:
    """The share of sequences that two sketches have in common (Jaccard)."""
    lowest = np.union1d(one.sketch, other.sketch)[: min(len(one.sketch), len(other.sketch))]
    both = np.isin(lowest, one.sketch) & np.isin(lowest, other.sketch)
    return float(ratio(np.array(both.sum() + 0.0), np.array(len(lowest) + 0.0)))


def _sketch(content: npt.NDArray[np.int64]) -> Hashes:
    """[at most SKETCH] the lowest hashes of its token sequences; a short content has one."""
    ids = np.pad(content, (0, max(SEQUENCE - len(content), 0)), constant_values=-1).view(np.uint64)
    mixed = np.lib.stride_tricks.sliding_window_view(ids + np.uint64(1), SEQUENCE) @ _FACTORS
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.unique(mixed ^ (mixed >> np.uint64(31)))[:SKETCH]
