"""Which sentences does a run train on, choose by, and test on?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.core.accumulators import generator
from headscope.corpus.contents import EncodeCounts
from headscope.corpus.encoder import Encoder
from headscope.errors import CorpusError, InputError
from headscope.experiments.probes.plan import Settings
from headscope.experiments.probes.treebank import Sentence, Split, read_split
from headscope.model.model import Model, file_sha256

DEV_SHARE = 10  # without --dev, a tenth of train is held out where dev is needed
Splits = tuple[Split, Split, Split]


def read_splits(
    model: Model, files: Mapping[str, Sequence[Path]], settings: Settings, probes: Sequence[str]
) -> Splits:
    """Train, dev and test.

    files   of "train", "test" and, where there are any, "dev"; without these, a tenth of train is
            held out where it is needed: for several epochs, and for the structural probe
    raises  CorpusError and InputError, also for a file that is named twice
    """
    _check_distinct(files)

    def read(name: str, limit: int | None = None) -> Split:
        encoder = Encoder(
            model.tokenizer, model_limit=model.limit, has_segments=model.has_segments,
            max_length=settings.max_length, long=settings.long,  # type: ignore[arg-type]
        )  # fmt: skip
        return read_split(name, files[name], encoder, limit=limit, seed=settings.seed)

    train, test = read("train", settings.limit), read("test", settings.test_limit)
    if settings.epochs == 1 and "structural" not in probes:
        return train, Split("dev", ()), test
    if files.get("dev"):
        return train, read("dev"), test
    return (*_held_out(train, seed=settings.seed), test)


def corpus_of(splits: Splits) -> dict[str, Any]:
    """All files, as `Corpus.describe`."""
    files = [file for split in splits for file in split.description.get("files", [])]
    return {"kind": "treebank", "files": files, "counted": "sentences"}


def counts_of(splits: Splits) -> dict[str, Any]:
    """What became of long and unreadable sentences, for a manifest."""
    counts = EncodeCounts()
    for split in splits:
        counts.add(split.counts)
    every = counts.as_dict()
    return {name: every[name] for name in ("skipped", "windowed", "reasons")}


def _held_out(train: Split, *, seed: int) -> tuple[Split, Split]:
    """Train without a tenth of its sentences, and these."""
    if len(train.sentences) < 2:
        raise InputError("found one sentence to train on; wanted two or more, or --dev FILE")
    order = generator(seed, "dev").permutation(len(train.sentences)).tolist()
    held = set(order[: max(1, len(order) // DEV_SHARE)])
    parts: tuple[list[Sentence], list[Sentence]] = ([], [])
    for at, sentence in enumerate(train.sentences):
        parts[at in held].append(sentence)
    kept = Split("train", tuple(parts[0]), train.counts, train.description)
    return kept, Split("dev", tuple(parts[1]))


def _check_distinct(files: Mapping[str, Sequence[Path]]) -> None:
    """Raises InputError where one file is in two parts, whatever its name."""
    seen: dict[str, tuple[str, Path]] = {}
    for name, paths in files.items():
        for path in paths:
            try:
                digest = file_sha256(path)
            except OSError as error:
                raise CorpusError(f"{path} cannot be read: {error.strerror}") from error
            if digest in seen:
                other, there = seen[digest]
                raise InputError(
                    f"--{other} {there} and --{name} {path} are the same file; wanted different "
                    "sentences to learn from and to be tested on"
                )
            seen[digest] = (name, path)
