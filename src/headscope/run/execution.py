"""Options that runs share: how inputs are read, what is left to chance, how it is executed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from headscope.core.options import Options, flag, keyword, option
from headscope.errors import InputError
from headscope.model.request import BATCH_TOKENS
from headscope.run.processes import check_shard

MOST = 1024  # workers, or threads of one; a system that refuses a thread ends the process
WHOLE_MAPS = 2048  # below about this number of tokens whole maps are the fastest way
SHARD_TOKENS = 32_768
LABELS = "labels"  # where a run stops: when every one is decided
Progress = Callable[[int, int], None]


def read_shard(text: str) -> tuple[int, int]:
    """`1/4` as (1, 4); InputError for anything else."""
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if not match:
        raise InputError(f"--shard is {text!r}; wanted I/N, say 1/4 to 4/4")
    return int(match[1]), int(match[2])


def _check_engine(
    engine: str, scheduler: str | None, *, workers: int, shard: tuple[int, int] | None
) -> None:
    """Raise InputError for options that exclude each other, or a missing package."""
    if engine == "dask" and find_spec("distributed") is None:
        raise InputError(
            "the engine dask needs distributed, which is not installed: "
            "pip install 'headscope[cluster]'"
        )
    if engine == "dask" and shard is not None:
        raise InputError("found the engine dask and a shard; wanted one of them")
    if scheduler is not None and engine != "dask":
        raise InputError(f"found scheduler {scheduler!r}; wanted the engine dask beside it")
    if scheduler is not None and workers > 1:
        raise InputError(
            f"found {workers} workers and a scheduler; wanted one of them: a running cluster has "
            "its own workers"
        )


def run_option(usual: str, **place: Any) -> Any:
    """The field of `--output`: a run folder; `usual` makes its name of other fields."""
    return option(
        "Run folder; re-running resumes.",
        names="-o --output",
        reads=Path,
        usual=usual,
        metavar="RUN",
        python="None: in memory.",
        heading="How to run",
        **place,
    )


def control_option(what: str, **place: Any) -> Any:
    """The field of `--control`; `what` is compared with it."""
    return option(
        f"What {what} are held against: random, networks that have learned nothing; a folder with "
        "a model of the same shape; none.",
        "random",
        reads=str,
        metavar="random|none|FOLDER",
        **place,
    )


def read_until(text: str) -> float | str:
    """`0.02` as a number, `labels` as it is; InputError for anything else."""
    try:
        return checked_until(text if text == LABELS else float(text))
    except ValueError:
        return checked_until(text)


def checked_until(until: Any) -> float | str:
    """A width, or `labels`; InputError for anything else."""
    number = isinstance(until, Real) and not isinstance(until, bool)
    if until == LABELS or (number and 0 < until < 1):
        return until if until == LABELS else float(until)
    raise InputError(
        f"--until is {until!r}; wanted a width between 0 and 1, such as 0.02 for intervals of two "
        "points (±1), or `labels`"
    )


def until_option(text: str, **how: Any) -> Any:
    """The field of `--until`."""
    place = {"heading": "What to read", "before": "limit", "metavar": "WIDTH|labels"}
    return option(text, reads=read_until, **place | how)


class Intervals(Options, heading="How sure"):
    """What is left to chance in a run over examples."""

    replicates: int = option("Groups of examples at most, for intervals.", 200, least=0)
    seed: int = option("Seed of all random draws.", 0, least=0)


class Lengths(Options, heading="Lengths"):
    """How long an input may be, and what happens to longer ones."""

    max_length: int | None = option(
        "Tokens of an input at most; by default 128 for packed text, else up to 512.", least=1
    )
    long: Literal["window", "skip", "error"] = option("What to do with anything longer.", "window")
    segment_ids: Literal["auto", "zeros"] = option(
        "zeros: all segment ids are 0, as in Clark et al.'s script.", "auto"
    )


class ReadingOptions(Lengths):
    """How a corpus is read, and how it is divided into batches and shards."""

    limit: int | None = option("Read only the first N documents.", least=1, heading="What to read")
    word_tokens: Literal["auto", "text", "alone"] = option(
        "Tokens of annotated words: of their running text or of each alone; auto takes the text "
        "where spaces change tokens.",
        "auto",
    )
    whole_maps: int = option(
        "Inputs of more tokens are read without making whole maps.",
        WHOLE_MAPS,
        least=1,
        heading="What to compute",
    )
    seed: int = option("Seed of all random draws.", 0, least=0)
    replicates: int = option("Groups of documents at most, for intervals.", 200, least=0)
    batch_tokens: int = option(
        "Tokens of a batch at most, padding included.", BATCH_TOKENS, least=1, heading="How to run"
    )
    shard_tokens: int = option(
        "Tokens of a shard; finished shards are kept.", SHARD_TOKENS, least=1
    )


class Linears(Options, heading="How to run"):
    """Who multiplies matrices."""

    linears: Literal["auto", "onednn", "stock"] = option(
        "Library for matrix products on a CPU; auto takes the faster one.",
        "auto",
        python="A continued run keeps its first choice.",
    )


class Keeping(Options, heading="How to run"):
    """What happens to the content of the run folder."""

    overwrite: bool = flag("Replace a run with other settings in the folder.")
    keep_shards: bool = flag("Leave the shards of a finished run beside its results.")


class Sharing(Options, heading="How to run"):
    """Which part of a run this process begins with."""

    shard: tuple[int, int] | None = option(
        "Process I of N, from 1, that fill one run folder together, started anywhere: it begins "
        "with its share and helps with what is left.",
        reads=read_shard,
        metavar="I/N",
    )

    def __post_init__(self) -> None:
        """Raise InputError for a share that is none, or does not go with other options."""
        super().__post_init__()
        workers, overwrite = getattr(self, "workers", 1), getattr(self, "overwrite", False)
        check_shard(self.shard, workers=workers, overwrite=overwrite)


class Workers(Options, heading="How to run"):
    """How many processes compute, and what shares out the work."""

    workers: int = option(
        "Processes; each holds a copy of the model.",
        1,
        least=1,
        python="A script that calls atlas(...) with several must do so below "
        '`if __name__ == "__main__":`.',
    )
    engine: Literal["processes", "dask"] = option(
        "What shares out the shards; dask: a Dask cluster, of --workers processes or at "
        "--scheduler.",
        "processes",
    )
    scheduler: str | None = option("Address of a Dask cluster that is there.", metavar="ADDRESS")

    def __post_init__(self) -> None:
        """Raise InputError for what does not go together, or is not installed."""
        super().__post_init__()
        shard = getattr(self, "shard", None)
        _check_engine(self.engine, self.scheduler, workers=self.workers, shard=shard)


class Threads(Options, heading="How to run"):
    """How many threads each process has."""

    threads: int | None = option(
        "Threads of each process; all cores shared by default.",
        least=1,
        python="(or OMP_NUM_THREADS)",
    )


class Execution(Workers, Sharing, Keeping, Threads, Linears):
    """How to run; nothing here changes a result beyond the last bits of float32.

    The numbers of workers and threads change no bit: sums are added in the order of the shards, and
    no loop divides a sum among threads. "onednn" and "stock" differ in the last bits. "auto"
    decides by timing, once per machine and sizes of a network: name one of them where runs of
    different machines must be equal to the bit.
    """

    progress: Progress | None = keyword("Called as progress(shards_done, shards).")
    command: Sequence[str] = keyword("The command line, for the report.", ())
    keep_draws: bool = keyword("Whether results keep the draws of their intervals.", False)

    def __post_init__(self) -> None:
        """Raise InputError for what cannot be run so."""
        super().__post_init__()
        if max(self.workers, self.threads or 1) > MOST:
            raise InputError(
                f"found workers={self.workers}, threads={self.threads}; wanted at least 1 of each, "
                f"at most {MOST}"
            )

    @property
    def threads_each(self) -> int:
        """Threads of each process: its share of the cores, at most OMP_NUM_THREADS if set."""
        wish = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
        here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        cores = max(1, min(here or 1, int(wish) if wish.isdecimal() else 1 << 20))
        return self.threads or max(1, cores // self.workers)
