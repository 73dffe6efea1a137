"""Stores the features of all sentences for one network in flat half-precision files.

They are written batch by batch and read sentence by sentence, so that no more than a batch is ever
in memory. Reads go through the system's file cache and not through a memory map, whose pages would
count as the process's own. Each file is a part of the run: it is there as a whole or not at all, so
that a killed run goes on, and several processes can write them together.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from math import prod
from pathlib import Path

import numpy as np

from headscope.core.whole_file import held, write_whole
from headscope.corpus.packing import batches
from headscope.errors import HeadscopeError, InputError
from headscope.experiments.probes import word_features
from headscope.experiments.probes.probe_plan import ProbePlan
from headscope.experiments.probes.settings import FeaturePlace
from headscope.experiments.probes.trees import TreebankSplit
from headscope.experiments.probes.word_features import Features, Shape
from headscope.model.linears import linears
from headscope.model.model import Model, evaluating
from headscope.run.experiment import in_parts
from headscope.run.merge_tree import Span
from headscope.run.processes import TakingPart
from headscope.run.shard_files import State
from headscope.run.shared_parts import KeptParts, WrittenElsewhereError

FOLDER = "features"  # in a run folder
KIND = np.dtype(np.float16)
PIECE = 1 << 26  # ours: bytes of a file, and of work that is lost when the process is killed


@dataclass(frozen=True)
class FeatureFile:
    """Arrays of float16 in one file, numbered in the order of their shapes.

    shapes   of each array
    batches  numbers of the arrays that are computed together, in the order of writing
    """

    path: Path
    shapes: Sequence[Shape]
    batches: Sequence[Sequence[int]]

    @cached_property
    def _starts(self) -> dict[int, int]:
        """Where each array begins, in bytes."""
        numbers = [number for batch in self.batches for number in batch]
        sizes = (size_of([self.shapes[number]]) for number in numbers)
        return dict(zip(numbers, accumulate(sizes, initial=0), strict=False))

    def put(self, compute: Callable[[Sequence[int]], Sequence[Features]]) -> None:
        """Compute all arrays and write the file, whole or not at all.

        compute  from the numbers of a batch, its arrays
        """

        def write(draft: str) -> None:
            with open(draft, "wb") as file:
                for batch in self.batches:
                    for number, array in zip(batch, compute(batch), strict=True):
                        if array.shape != self.shapes[number]:
                            raise ValueError(f"found {array.shape}; wanted {self.shapes[number]}")
                        file.write(np.ascontiguousarray(array, KIND).tobytes())

        write_whole(self.path, write)

    def read(self, number: int, part: int | None = None) -> Features:
        """An array, or one part of it along its first axis."""
        shape, start = self.shapes[number], self._starts[number]
        if part is not None:
            shape = shape[1:]
            start += part * size_of([shape])
        content = np.fromfile(self.path, KIND, prod(shape), offset=start)
        if len(content) != prod(shape):
            raise HeadscopeError(f"{self.path} has been cut; run the same command again")
        return content.reshape(shape)  # as `shapes` says


class FeaturePieces:
    """The arrays of a split in several files, each written whole by some process."""

    def __init__(self, files: Sequence[FeatureFile]) -> None:
        self._of = {number: file for file in files for batch in file.batches for number in batch}

    def read(self, number: int, part: int | None = None) -> Features:
        """As in `FeatureFile`."""
        return self._of[number].read(number, part)


Splits = Sequence[FeaturePieces]


class _PieceParts(KeptParts):
    """The pieces that exist, whichever process wrote them.

    needed  whether anybody will read them
    """

    def __init__(
        self, files: Sequence[FeatureFile], own: TakingPart | None, needed: Callable[[], bool]
    ) -> None:
        super().__init__(None, "", own)
        self.files, self.needed = files, needed
        self.spans = self.look()

    def look(self, near: Span | None = None) -> set[Span]:
        return {(at, at) for at, file in enumerate(self.files) if file.path.is_file()}

    def refreshed(self) -> bool:
        self.spans = self.look()
        return not self.needed()

    def part(self, number: int, make: Callable[[], State]) -> State:
        return {} if self.files[number].path.is_file() else make()


def size_of(shapes: Sequence[Shape]) -> int:
    """Bytes of these arrays on disk."""
    return sum(map(prod, shapes)) * KIND.itemsize


def shapes_of(kind: str, model: Model, split: TreebankSplit) -> list[Shape]:
    """[sentence] the shapes of one kind of features."""
    shape = word_features.hidden_shape if kind == "hidden" else word_features.attention_shape
    return [shape(sentence, model) for sentence in split.sentences]


def check_size(plan: ProbePlan, place: FeaturePlace, run: Path | None) -> str:
    """A sentence on the size of the features; "" without any.

    run     folder of the run; None: in memory
    raises  InputError for more than is allowed or free

    Only one kind is there at a time, so the largest counts, unless all are kept.
    """
    if not plan.kinds:
        return ""
    sizes = [
        sum(size_of(shapes_of(kind, plan.model, split)) for split in plan.splits)
        for kind in plan.kinds
    ]
    size = sum(sizes) if place.keep else max(sizes)
    facts = f"features of {plan.sentences:,} sentences take {_bytes(size)} on disk (half precision)"
    advice = "give fewer sentences (--limit) or shorter ones (--max-length 64 --long skip)"
    if size > place.limit * 1e9:
        raise InputError(
            f"{facts}, and --features-limit allows {place.limit:g} GB\n{advice}, or a higher limit"
        )
    where = place.folder or run or Path(tempfile.gettempdir())
    while not where.exists() and where != where.parent:
        where = where.parent
    free = shutil.disk_usage(where).free
    written = (run / FOLDER).glob("*.bin") if run is not None else ()  # by a run that was stopped
    if size > free + sum(file.stat().st_size for file in written):
        raise InputError(
            f"{facts}, and {where} has {_bytes(free)} free\n"
            f"{advice}, or name another folder: --features FOLDER"
        )
    return facts if place.keep else f"{facts}; they are deleted at the end"


@dataclass
class FeatureFolder:
    """The features of one run; each kind is computed on first use.

    folder   holds the files; `scratch` names more of them
    key      names the run: files of another are not taken
    linears  how the network is run
    keep     whether `drop` lets go of files without deleting them
    advance  called with how many more sentences were read
    own      this process, of several that write them together; else None
    """

    folder: Path
    key: str
    plan: ProbePlan
    linears: str
    keep: bool = False
    advance: Callable[[int], None] = lambda count: None
    own: TakingPart | None = None
    _known: dict[str, Splits] = field(default_factory=dict)

    def of(self, kind: str, needed: Callable[[], bool] = lambda: True) -> Splits:
        """Train, dev and test, one array per sentence.

        needed  asked, of several processes, whether others have left nothing to do with them
        """
        if kind not in self._known:
            self._known[kind] = self._filled(kind, needed)
        return self._known[kind]

    def drop(self, kind: str) -> None:
        """Deletes one kind of features to make room for the next; undeletable files are left."""
        self._known.pop(kind, None)
        for file in () if self.keep else self.folder.glob(f"{kind}-*"):
            with suppress(OSError):
                file.unlink()

    def scratch(self, name: str) -> Path:
        """A file for the state of a training."""
        return self.folder / f"training-{name}"

    def _filled(self, kind: str, needed: Callable[[], bool]) -> Splits:
        model, settings = self.plan.model, self.plan.settings
        if kind == "random":
            model = word_features.randomised(model, seed=settings.seed)
        extract = (
            word_features.hidden_of(model)
            if kind == "hidden"
            else word_features.attention_of(model, settings.pieces)
        )
        of_split = [(split, self._pieces(kind, split)) for split in self.plan.splits]
        every = [(split, file) for split, files in of_split for file in files]

        def make(number: int) -> State:
            split, file = every[number]
            file.put(lambda some: extract([split.sentences[at] for at in some]))
            return {}

        def done(number: int) -> None:
            self.advance(sum(map(len, every[number][1].batches)))

        parts = _PieceParts([file for _, file in every], self.own, needed)
        with (
            evaluating(model.network),
            linears(model.network, self.linears),
            suppress(WrittenElsewhereError),
        ):
            for _ in parts.parts(range(len(every)), make, done, what=f"{kind}-features"):
                pass
        return [FeaturePieces(files) for _, files in of_split]

    def _pieces(self, kind: str, split: TreebankSplit) -> list[FeatureFile]:
        shapes = shapes_of(kind, self.plan.model, split)
        examples = [sentence.example for sentence in split.sentences]
        together = batches(examples, budget=self.plan.settings.batch_tokens)
        parts = in_parts(
            together, lambda batch: size_of([shapes[at] for at in batch]), tokens=PIECE
        )
        name = f"{kind}-{split.name}-{self.key[:12]}"
        return [
            FeatureFile(self.folder / f"{name}-{number:05d}.bin", shapes, part)
            for number, part in enumerate(parts)
        ]


@contextmanager
def folder_of(
    place: FeaturePlace, run: Path | None, key: str, *, shared: bool = False
) -> Iterator[Path]:
    """The folder for the features of a run; deleted when the run has finished, unless kept.

    shared  whether several processes fill it
    """
    if place.folder is None and run is None:
        with tempfile.TemporaryDirectory(prefix="headscope-features-") as made:
            yield Path(made)
        return
    folder = place.folder / f"headscope-{key[:12]}" if place.folder else Path(run or "") / FOLDER
    instead = "wait until it has finished, or give another --features"
    with held(folder, instead=instead, shared=shared):
        yield folder
        if not place.keep:  # not when it was interrupted: the next run goes on from here
            shutil.rmtree(folder, ignore_errors=True)


def _bytes(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size / 1e3:.0f} kB"
