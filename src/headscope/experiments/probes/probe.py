"""Trains probes that predict syntactic heads from attention, words or hidden states.

    run = probe("demo", "train.conllu", "test.conllu", output="run")
    run["probes"]["uas"].sel(probe="attention")

Nothing heavy is imported before the request is known to be right; `probing` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headscope.core.head_names import first
from headscope.core.options import (
    Options,
    argument,
    comma_separated,
    flag,
    keyword,
    option,
    required,
    several,
    takes,
    whole,
)
from headscope.errors import InputError
from headscope.model.request import BATCH_TOKENS, model_place
from headscope.run.execution import Execution, Intervals
from headscope.tasks.task_request import Loading, loaded

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.run.store import Run


Labels = Sequence[Sequence[str]]
Files = str | Path | Sequence[str | Path]

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
    return tuple(n - first() for n in _numbers("--structural-layers", text, first())) or None


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
        "Learning curve: also train on so many sentences.",
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


class ProbeRequest(Loading, ProbeSettings, kw_only=False, heading="The data"):
    """Which probes are trained on what."""

    model: Model | str | Path = argument("A model, or what `load` takes.", reads=model_place)
    train: Files = required(
        "CoNLL-U or CoNLL-X to learn from; repeatable.", reads=Path, many=True, before="limit"
    )
    test: Files = required(
        "CoNLL-U or CoNLL-X to be scored on; repeatable.", reads=Path, many=True, before="limit"
    )
    _: KW_ONLY
    dev: Files = several(
        "To choose the best epoch by; by default a tenth of --train.", reads=Path, before="limit"
    )
    words: str | Path | None = option(
        "Word vectors: GloVe, word2vec (text, binary), fastText's .vec, gzipped or not; or "
        "glove-6b-50d, the package.",
        reads=str,
        metavar="FILE",
        before="limit",
        python="None: probes on words are left out.",
    )
    output: str | Path | None = option(
        "Run folder; re-running resumes.",
        names="-o --output",
        reads=Path,
        usual="probe-{model}",
        metavar="RUN",
        python="None: in memory.",
        heading="How to run",
    )
    settings: ProbeSettings | None = whole(ProbeSettings)
    place: FeaturePlace | None = keyword("Where the features are kept.")
    atlas: Run | str | Path | None = option(
        "A run of `headscope atlas`, to name the heads.",
        reads=Path,
        metavar="RUN",
        heading="The probes",
        before="batch_tokens",
    )
    labels: Labels | None = keyword("Instead: [layer][head] what is known of each head.")
    execution: Execution | None = keyword(
        "Its progress is called with sentences read and trained on, and all."
    )
    tell: Callable[[str], object] = keyword(
        "Called with what is to be said before the work begins.", lambda text: None
    )


@takes(ProbeRequest)
def probe(request: ProbeRequest) -> Run:
    """Trains and tests all probes that can be run.

    Raises InputError and its kinds before anything is computed.
    """
    settings = ProbeSettings.of(request)
    settings.run_probes(words=request.words is not None)  # raises for one that lacks them
    if request.output is not None:
        from headscope.run.store import RunFolder

        RunFolder(request.output).check()
    model = loaded(request.model, Loading.of(request))
    from headscope.experiments.probes.probing import probe_run

    files = {"train": request.train, "test": request.test}
    return probe_run(
        model,
        files | ({"dev": request.dev} if request.dev else {}),
        settings,
        words=request.words,
        output=request.output,
        place=request.place,
        atlas=request.atlas,
        labels=request.labels,
        execution=request.execution,
        tell=request.tell,
    )
