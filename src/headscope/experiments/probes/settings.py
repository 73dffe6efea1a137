"""Settings of probes, and where their features are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from headscope.core.head_names import HeadNames
from headscope.core.options import Options, comma_separated, flag, option
from headscope.errors import InputError
from headscope.model.request import BATCH_TOKENS
from headscope.run.execution import Intervals

STRUCTURAL_EPOCHS = 40
PATIENCE = 5  # epochs without a better loss, after which training ends
LIMIT_GB = 20.0
TRAINED = ("attention", "attention_words", "distances_words", "random_words")  # score every pair
PROBES = ("right_branching", *TRAINED, "structural")
NEED_WORDS = frozenset(TRAINED[1:])


def read_probes(text: str) -> tuple[str, ...] | None:
    """The names in a text; None for none: all."""
    return comma_separated(text) or None


def read_sizes(text: str) -> tuple[int, ...]:
    """`100,300` as (100, 300)."""
    return _numbers("--curve", text, 1)


def read_layers(text: str) -> tuple[int, ...] | None:
    """`1,2` as (0, 1), counted as --zero-based says; None for none: all."""
    first = HeadNames(()).first
    return tuple(n - first for n in _numbers("--structural-layers", text, first)) or None


def _numbers(option: str, text: str, least: int) -> tuple[int, ...]:
    parts = comma_separated(text)
    if any(not part.isdecimal() or int(part) < least for part in parts):
        raise InputError(
            f"found {option} {text}; wanted numbers from {least}, say {option} 100,300"
        )
    return tuple(int(part) for part in parts)


class ProbeSettings(Intervals):
    """Settings of probes; the defaults are those of Clark et al. (2019), and for the epochs of the
    structural probe that of Hewitt and Manning (2019).
    """

    limit: int | None = option(
        "Sentences of --train at most, drawn by --seed.", least=1, heading="The data"
    )
    test_limit: int | None = option("Sentences of --test at most, drawn by --seed.", least=1)
    max_length: int | None = option(
        "Tokens of a sentence; what the model takes by default.", least=4
    )
    long: Literal["window", "skip", "error"] = option("What to do with longer ones.", "window")
    pieces: Literal["mean", "first", "max"] = option(
        "How the attention from a word of several tokens is joined.", "mean"
    )
    probes: tuple[str, ...] | None = option(
        "Some of right_branching, attention, attention_words, distances_words, random_words, "
        "structural; by default all.",
        reads=read_probes,
        metavar="A,B,…",
        heading="The probes",
    )
    epochs: int = option("Epochs of the probes on attention; the best on --dev counts.", 1, least=1)
    patience: int = option(
        "Epochs without a better loss on --dev before training ends.", PATIENCE, least=1
    )
    rate: float = option("Learning rate of Adam.", 0.002)
    seeds: int = option("Trainings of each probe, from different first weights.", 1, least=1)
    curve: tuple[int, ...] = option(
        "Learning curve: also train on these numbers of sentences.",
        (),
        reads=read_sizes,
        metavar="N,N,…",
    )
    tree: bool = flag("Also the likeliest directed tree of each sentence (slower).")
    legacy_root_shift: bool = flag("Words get the next word's vector, as in Clark et al.'s code.")
    structural_layers: tuple[int, ...] | None = option(
        "Layers of the structural probe, from 1; by default all.",
        reads=read_layers,
        metavar="N,N,…",
        python="In Python from 0, by the model's own numbers.",
    )
    structural_epochs: int = option(
        "Epochs of the structural probe at most.", STRUCTURAL_EPOCHS, least=1
    )
    rank: int | None = option("Rank of the structural probe; by default full.", least=1)
    batch_tokens: int = option(
        "Tokens of a forward pass at most.", BATCH_TOKENS, least=1, heading="How to run"
    )

    def __post_init__(self) -> None:
        """Raise InputError for probes that there are not, or numbers that cannot be."""
        super().__post_init__()
        for name in self.probes or ():
            if name not in PROBES:
                raise InputError(f"no probe called {name!r}; there are {', '.join(PROBES)}")
        if min(self.curve, default=1) < 1:
            raise InputError(f"curve is {self.curve}; wanted numbers of sentences, at least 1")
        if not self.rate > 0:
            raise InputError(f"found a rate of {self.rate}; wanted more than 0")

    def run_probes(self, *, words: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The probes that are run, and those that are not for want of word vectors.

        raises  InputError where one that needs them was asked for by name
        """
        names = PROBES if self.probes is None else tuple(p for p in PROBES if p in self.probes)
        lacking = () if words else tuple(name for name in names if name in NEED_WORDS)
        if lacking and self.probes is not None:
            raise InputError(
                f"the probe {lacking[0]} needs word vectors; give --words FILE (GloVe, word2vec or "
                "fastText), or --words glove-6b-50d"
            )
        return tuple(name for name in names if name not in lacking), lacking


class FeaturePlace(Options, kw_only=False, heading="Features"):
    """The folder for features, and their maximum size."""

    folder: Path | None = option(
        "Where features are kept meanwhile; in the run by default.",
        names="--features",
        metavar="FOLDER",
    )
    limit: float = option(
        "Disk space of the features at most.",
        LIMIT_GB,
        least=0,
        above=True,
        names="--features-limit",
        metavar="GB",
    )
    keep: bool = flag("Do not delete the features at the end.", names="--keep-features")
