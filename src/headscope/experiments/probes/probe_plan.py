"""The plan of a run of probes: its settings, model, sentences, word vectors and trainings."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from headscope.core.accumulators import generator
from headscope.corpus.contents import EncodeCounts
from headscope.corpus.encoder import Encoder
from headscope.errors import CorpusError, InputError
from headscope.experiments.probes.settings import TRAINED, ProbeSettings
from headscope.experiments.probes.trees import TreebankSplit, read_split
from headscope.experiments.probes.word_vectors import WordVectors
from headscope.model.model import Model, file_sha256

NETWORK = {"attention": "model", "attention_words": "model", "random_words": "random"}
DEV_SHARE = 10  # without --dev, a tenth of train is held out where dev is needed
Splits = tuple[TreebankSplit, TreebankSplit, TreebankSplit]


@dataclass(frozen=True)
class ProbeTraining:
    """One training: a probe on the first `size` sentences in random order, from one seed."""

    probe: str
    size: int
    seed: int


@dataclass(frozen=True)
class ProbePlan:
    """Everything that decides the numbers.

    names    the probes that are run
    lacking  those that are not, for want of word vectors
    labels   [layer][head] what an atlas says of each head; None without one
    raises   InputError for a curve, layers or labels that cannot be
    """

    model: Model
    splits: Splits
    settings: ProbeSettings
    names: tuple[str, ...]
    lacking: tuple[str, ...]
    vectors: WordVectors | None
    labels: Sequence[Sequence[str]] | None = None

    def __post_init__(self) -> None:
        size, layers, heads = self.size, self.model.shape.layers, self.model.shape.heads
        if too_large := [part for part in self.settings.curve if part > size]:
            raise InputError(
                f"found {too_large[0]} sentences in --curve, and {size} to train on; give sizes "
                "below"
            )
        if any(not 0 <= layer < layers for layer in self.layers):
            names = self.model.shape.names
            raise InputError(
                f"found layer {names.layer(max(self.layers))}; {self.model.name} has layers "
                f"{names.layer(0)} to {names.layer(layers - 1)}"
            )
        if self.labels is not None and [len(row) for row in self.labels] != [heads] * layers:
            raise InputError(f"found labels of another shape; wanted {layers} × {heads} heads")

    @property
    def size(self) -> int:
        """Sentences to train on."""
        return len(self.splits[0].sentences)

    @property
    def sentences(self) -> int:
        """Sentences of all splits."""
        return sum(len(split.sentences) for split in self.splits)

    @property
    def layer_work(self) -> int:
        """Sentences that both structural probes of one layer are trained on."""
        return 2 * self.settings.structural_epochs * self.size

    @property
    def constant_root(self) -> bool:
        """Whether ROOT's score is one learned number, as there are no special tokens."""
        return self.model.vocabulary.cls is None and self.model.vocabulary.sep is None

    @cached_property
    def jobs(self) -> list[ProbeTraining]:
        """All trainings of probes that score pairs, in a fixed order; the curve from one seed."""
        sizes = sorted({part for part in self.settings.curve if part < self.size})
        runs = [(self.size, seed) for seed in range(self.settings.seeds)]
        runs += [(part, 0) for part in sizes]
        return [ProbeTraining(name, *run) for name in TRAINED if name in self.names for run in runs]

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers of the structural probe, as places among those that attend."""
        requested, shape = self.settings.structural_layers, self.model.shape
        if "structural" not in self.names:
            return ()
        if requested is None:
            return tuple(range(shape.layers))
        return tuple(map(shape.names.place, requested))

    @property
    def kinds(self) -> list[str]:
        """Which features are needed, in the order of the work."""
        needed = {NETWORK.get(job.probe) for job in self.jobs}
        return [k for k in ("model", "random") if k in needed] + ["hidden"] * bool(self.layers)

    @property
    def spec(self) -> dict[str, Any]:
        """What decides the numbers beside the model and its inputs, as values that JSON knows."""
        layers = [*map(self.model.shape.names.number, self.layers)]
        return asdict(self.settings) | {
            "probes": self.names,
            "structural_layers": layers,
            "gold": [split.sha256 for split in self.splits],
            "words": None if self.vectors is None else self.vectors.sha256,
            "labels": self.labels,
        }


def read_splits(
    model: Model,
    files: Mapping[str, Sequence[Path]],
    settings: ProbeSettings,
    probes: Sequence[str],
) -> Splits:
    """Reads train, dev and test.

    files   of "train", "test" and, where there are any, "dev"; without these, a tenth of train is
            held out where it is needed: for several epochs, and for the structural probe
    raises  CorpusError and InputError, also for a file that is named twice
    """
    _check_distinct(files)

    def read(name: str, limit: int | None = None) -> TreebankSplit:
        encoder = Encoder(
            model.tokenizer,
            model_limit=model.limit,
            has_segments=model.has_segments,
            limited_by=model.positions.source,
            max_length=settings.max_length,
            long=settings.long,
            start=model.start,
        )
        return read_split(name, files[name], encoder, limit=limit, seed=settings.seed)

    train, test = read("train", settings.limit), read("test", settings.test_limit)
    if settings.epochs == 1 and "structural" not in probes:
        return train, TreebankSplit("dev", ()), test
    if files.get("dev"):
        return train, read("dev"), test
    return (*_held_out(train, seed=settings.seed), test)


def _held_out(train: TreebankSplit, *, seed: int) -> tuple[TreebankSplit, TreebankSplit]:
    """Train without a tenth of its sentences, and these."""
    count = len(train.sentences)
    if count < 2:
        raise InputError("found one sentence to train on; wanted two or more, or --dev FILE")
    held = set(generator(seed, "dev").permutation(count)[: max(1, count // DEV_SHARE)].tolist())
    kept, dev = (
        tuple(s for at, s in enumerate(train.sentences) if (at in held) == wanted)
        for wanted in (False, True)
    )
    return replace(train, sentences=kept), TreebankSplit("dev", dev)


def _check_distinct(files: Mapping[str, Sequence[Path]]) -> None:
    """Raises InputError where one file is in two parts, whatever its name."""
    seen: dict[str, str] = {}
    for name, path in ((name, path) for name, paths in files.items() for path in paths):
        try:
            digest = file_sha256(path)
        except OSError as error:
            raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
        if digest in seen:
            raise InputError(
                f"{seen[digest]} and --{name} {path} are the same file; wanted different "
                "sentences for training and testing"
            )
        seen[digest] = f"--{name} {path}"


def corpus_of(splits: Splits) -> dict[str, Any]:
    """All files, as `Corpus.describe`."""
    files = [file for split in splits for file in split.description.get("files", [])]
    return {"kind": "treebank", "files": files, "counted": "sentences"}


def overlap_note(splits: Splits) -> tuple[str, ...]:
    """The note of how many test sentences are among those that probes learn from; none for none.

    raises  InputError where all are
    """
    train, dev, test = splits
    learned = {one.forms for split in (train, dev) for one in split.sentences}
    shared, count = sum(one.forms in learned for one in test.sentences), len(test.sentences)
    if shared == count:
        raise InputError(
            f"all {count} test sentences are in the training data; wanted others to be scored on"
        )
    if not shared:
        return ()
    return (f"{shared:,} of {count:,} test sentences are in the training data, too",)


def counts_of(splits: Splits) -> dict[str, Any]:
    """What became of long and unreadable sentences, for a manifest."""
    counts = EncodeCounts()
    for split in splits:
        counts.add(split.counts)
    every = counts.as_dict()
    return {name: every[name] for name in ("skipped", "windowed", "reasons")}
