"""The settings of a run of probes."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.errors import InputError
from headscope.experiments.probes.resumable_training import PATIENCE

STRUCTURAL_EPOCHS = 40
PROBES = (
    "right_branching", "attention", "attention_words", "distances_words", "random_words",
    "structural",
)  # fmt: skip
NEED_WORDS = frozenset({"attention_words", "distances_words", "random_words"})
TRAINED = ("attention", "attention_words", "distances_words", "random_words")  # score every pair
NETWORK = {"attention": "model", "attention_words": "model", "random_words": "random"}


@dataclass(frozen=True)
class ProbeSettings:
    """Settings of probes; the defaults are Clark et al.'s (2019) unless another source is named.

    probes             of PROBES; None: all that can be run
    epochs, patience   of the probes on attention; with several epochs, those of dev decide
    rate               of Adam
    seeds              how many times each is trained, from other first weights
    curve              sizes of smaller training sets
    tree               also the most likely directed tree of each sentence
    legacy_root_shift  as the authors' code, see `pair_scorers.pair_vectors`
    structural_layers  of the structural probe, from 0; None: all
    structural_epochs  at most (Hewitt and Manning's number)
    rank               rows of the structural probe's matrix; None: as many as neurons
    pieces             attention from a word of several tokens, as `Words.maps`
    limit, test_limit  sentences of train and of test at most, drawn by the seed
    """

    probes: tuple[str, ...] | None = None
    epochs: int = 1
    patience: int = PATIENCE
    rate: float = 0.002
    seeds: int = 1
    curve: tuple[int, ...] = ()
    tree: bool = False
    legacy_root_shift: bool = False
    structural_layers: tuple[int, ...] | None = None
    structural_epochs: int = STRUCTURAL_EPOCHS
    rank: int | None = None
    pieces: str = "mean"
    max_length: int | None = None
    long: str = "window"
    limit: int | None = None
    test_limit: int | None = None
    batch_tokens: int = 2048
    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises InputError for what cannot be."""
        for name in self.probes or ():
            if name not in PROBES:
                raise InputError(f"no probe called {name!r}; there are {', '.join(PROBES)}")
        if min(self.epochs, self.seeds, self.structural_epochs, self.rank or 1, *self.curve, 1) < 1:
            raise InputError("found a number of epochs, seeds, rows or sentences below 1")
        if not self.rate > 0:
            raise InputError(f"found a rate of {self.rate}; wanted more than 0")

    def run_probes(self, *, words: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The probes that are run, and those that are not for want of word vectors.

        raises  InputError where one that needs them was asked for by name
        """
        asked = PROBES if self.probes is None else tuple(p for p in PROBES if p in self.probes)
        lacking = () if words else tuple(name for name in asked if name in NEED_WORDS)
        if lacking and self.probes is not None:
            raise InputError(
                f"the probe {lacking[0]} needs word vectors; give --words FILE (GloVe, word2vec or "
                "fastText), or --words glove-6b-50d"
            )
        return tuple(name for name in asked if name not in lacking), lacking
