"""What do all sentences of train, dev and test look like to one network, and where is that kept?"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headscope.corpus.packing import batches
from headscope.errors import InputError
from headscope.experiments.probes.asking import Asking
from headscope.experiments.probes.extract import (
    Extract,
    attention_of,
    attention_shape,
    hidden_of,
    hidden_shape,
)
from headscope.experiments.probes.random_model import randomised
from headscope.experiments.probes.storage import Shape, Store, size_of
from headscope.experiments.probes.treebank import Split
from headscope.model.linears import linears
from headscope.model.model import Model, evaluating

LIMIT_GB = 20.0  # ours
FOLDER = "features"  # in a run folder
Stores = tuple[Store, Store, Store]


@dataclass(frozen=True)
class Place:
    """Where features are kept, and how much of them.

    folder  a folder of their own is made in it; None: in the run folder, or a temporary one
    limit   GB at most
    keep    whether they stay when the run has finished
    """

    folder: Path | None = None
    limit: float = LIMIT_GB
    keep: bool = False


def shapes_of(kind: str, model: Model, split: Split) -> list[Shape]:
    """[sentence] the shapes of one kind of features."""
    shape = hidden_shape if kind == "hidden" else attention_shape
    return [shape(sentence, model) for sentence in split.sentences]


def check_size(
    kinds: Sequence[str], model: Model, splits: Sequence[Split], place: Place, run: Path | None
) -> str:
    """A sentence on how large the features get; "" where there are none.

    run     folder of the run; None: in memory
    raises  InputError for more than is allowed or free

    Only one kind is there at a time, so the largest counts, unless all are kept.
    """
    sizes = [sum(size_of(shapes_of(kind, model, split)) for split in splits) for kind in kinds]
    if not sizes:
        return ""
    size = sum(sizes) if place.keep else max(sizes)
    count = sum(len(split.sentences) for split in splits)
    told = f"features of {count:,} sentences take {_bytes(size)} on disk (half precision)"
    advice = "give fewer sentences (--limit) or shorter ones (--max-length 64 --long skip)"
    if size > place.limit * 1e9:
        raise InputError(
            f"{told}, and --features-limit allows {place.limit:g} GB\n{advice}, or a higher limit"
        )
    where = place.folder or run or Path(tempfile.gettempdir())
    while not where.exists() and where != where.parent:
        where = where.parent
    free = shutil.disk_usage(where).free
    written = (run / FOLDER).glob("*.bin") if run is not None else ()  # by a run that was stopped
    if size > free + sum(file.stat().st_size for file in written):
        raise InputError(
            f"{told}, and {where} has {_bytes(free)} free\n"
            f"{advice}, or name another folder: --features FOLDER"
        )
    return told if place.keep else f"{told}; they are deleted at the end"


class FeatureFolder:
    """The features of one run; each kind is computed when it is first asked for.

    folder   holds the files; `scratch` names more of them
    key      names the run: files of another are written anew
    linears  how the network is run
    keep     whether `drop` lets go of files without deleting them
    advance  called with how many more sentences were read
    """

    def __init__(
        self,
        folder: Path,
        key: str,
        asking: Asking,
        linears: str,
        *,
        keep: bool = False,
        advance: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.folder, self.key, self.asking = folder, key, asking
        self.linears, self.keep, self.advance = linears, keep, advance
        self._open: dict[str, Stores] = {}

    def __enter__(self) -> FeatureFolder:
        return self

    def __exit__(self, *_: object) -> None:
        for kind in list(self._open):
            self._close(kind)

    def of(self, kind: str) -> Stores:
        """The stores of train, dev and test, one array for each sentence."""
        if kind not in self._open:
            self._open[kind] = self._filled(kind)
        return self._open[kind]

    def drop(self, kind: str) -> None:
        """Make room for the next kind."""
        self._close(kind)
        for file in () if self.keep else self.folder.glob(f"{kind}-*"):
            file.unlink(missing_ok=True)

    def scratch(self, name: str) -> Path:
        """A file for the state of a training."""
        return self.folder / f"training-{name}"

    def _close(self, kind: str) -> None:
        for store in self._open.pop(kind, ()):
            store.close()

    def _filled(self, kind: str) -> Stores:
        asking, settings = self.asking, self.asking.settings
        model = asking.model
        if kind == "random":
            model = randomised(model, seed=settings.seed)
        extract = hidden_of(model) if kind == "hidden" else attention_of(model, settings.pieces)
        with evaluating(model.network), linears(model.network, self.linears):
            first, second, third = (self._store(kind, split, extract) for split in asking.splits)
        return first, second, third

    def _store(self, kind: str, split: Split, extract: Extract) -> Store:
        sentences, shapes = split.sentences, shapes_of(kind, self.asking.model, split)
        examples = [sentence.example for sentence in sentences]
        order = list(batches(examples, budget=self.asking.settings.batch_tokens))
        path = self.folder / f"{kind}-{split.name}.bin"
        store = Store(path, shapes, order, f"{self.key} {kind}")
        store.fill(lambda some: extract([sentences[at] for at in some]), progress=self.advance)
        return store


@contextmanager
def folder_of(place: Place, run: Path | None, key: str) -> Iterator[Path]:
    """The folder for the features of a run; deleted when the run has finished, unless kept."""
    if place.folder is None and run is None:
        with tempfile.TemporaryDirectory(prefix="headscope-features-") as made:
            yield Path(made)
        return
    folder = place.folder / f"headscope-{key[:12]}" if place.folder else Path(run or "") / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make {folder}: {error.strerror}; choose another folder with --features"
        ) from error
    yield folder
    if not place.keep:  # not when it was interrupted: the next run goes on from here
        shutil.rmtree(folder, ignore_errors=True)


def _bytes(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size / 1e3:.0f} kB"
