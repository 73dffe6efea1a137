"""Check what is installed, and whether a model and a corpus can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from headscope.claims.question import refused
from headscope.core.wording import how_many, precision_in_words
from headscope.corpus.annotate.parsers import installed_parsers
from headscope.corpus.document import Corpus
from headscope.errors import HeadscopeError
from headscope.model.kernel_operations import LN2
from headscope.model.model import Model
from headscope.model.row_sums import add_rows
from headscope.run.execution import Execution, ReadingOptions
from headscope.run.folder_check import BAD, NOTE, OK, Line
from headscope.run.known_analyses import known_analyses
from headscope.run.machine_choices import kept_for
from headscope.run.manifest import versions
from headscope.run.plan import make_plan
from headscope.run.settings import Settings


def check_installation(
    load: Callable[[], Model], corpus: Callable[[], Corpus] | None
) -> list[Line]:
    """A line for each thing that is looked at; what fails is one of them, and the rest goes on.

    load    gives the model
    corpus  gives the corpus, if there is one to look at
    """
    lines = list[Line]()
    _installation(lines)
    loaded = _model(lines, load)
    if corpus is not None:
        with _check(lines, "corpus") as say:
            _corpus(say, loaded, corpus())
    return lines


@contextmanager
def _check(lines: list[Line], what: str) -> Iterator[Callable[..., None]]:
    def say(finding: str, *, verdict: str = OK) -> None:
        lines.append((verdict, what, finding))

    try:
        yield say
    except (HeadscopeError, ImportError, OSError, RuntimeError, ValueError) as error:
        say(str(error).splitlines()[0], verdict=BAD)


def _installation(lines: list[Line]) -> None:
    with _check(lines, "versions") as say:
        say(", ".join(f"{k} {v}" for k, v in versions().items()))
    with _check(lines, "compiled loops") as say:
        say(f"agree with torch to {_kernel_error():.0e}")
    with _check(lines, "matrix products") as say:
        fast = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        say("oneDNN available, timed once per machine and network" if fast else "stock only")
    with _check(lines, "threads and sizes") as say:
        read = ReadingOptions()
        say(
            f"{Execution().threads_each} threads; batches of {read.batch_tokens:,} tokens, shards "
            f"of {read.shard_tokens:,}, whole maps up to {read.whole_maps:,}: fixed, never timed"
        )
    with _check(lines, "accelerator") as say:
        if torch.cuda.is_available():
            say(f"{torch.cuda.get_device_name(0)}: use --device cuda")
        else:
            say("none; the CPU is used", verdict=NOTE)
    with _check(lines, "analyses") as say:
        say(f"{len(known_analyses())} known", verdict=NOTE if refused() else OK)
        for why in refused():
            say(f"left out: {why}", verdict=NOTE)
    with _check(lines, "annotation of text") as say:
        parsers = installed_parsers()
        say(
            ", ".join(parsers) or 'no parser: pip install "headscope[annotate]"',
            verdict=OK if parsers else NOTE,
        )


def _kernel_error() -> float:
    """Largest difference between the compiled loops and torch on random maps."""
    maps = torch.rand(1, 2, 9, 9, generator=torch.Generator().manual_seed(0)).softmax(-1)
    entropy, columns = torch.zeros(1, 2, 9), torch.zeros(1, 2, 2, 9)
    lengths, tokens = torch.tensor([9]), torch.zeros(1, 9, dtype=torch.int32)
    arrays = (maps, lengths, tokens, tokens, tokens, entropy, columns, torch.zeros(0, 2, 9, 4))
    add_rows(*(a.numpy() for a in arrays))
    error = (entropy * LN2 - torch.special.entr(maps).sum(-1)).abs().max()
    error = torch.maximum(error, (columns[:, :, 0] - maps.sum(2)).abs().max())
    if error > 1e-5:
        raise RuntimeError(f"compiled loops differ from torch by {float(error):.1e}")
    return float(error)


def _model(lines: list[Line], load: Callable[[], Model]) -> Model | None:
    loaded = None
    with _check(lines, "model") as say:
        loaded = load()
        say(repr(loaded))
    if loaded is None:
        return None
    with _check(lines, "attention") as say:
        fallback = "its own eager maps" if loaded.fallback else "transformers' attention registry"
        stacks = ", ".join(
            f"{s.stack} " + (s.size if s.others else f"{s.layers}×{s.heads}")
            for s in loaded.shapes.values()
        )
        most = "at most {} tokens ({})".format(*loaded.positions)
        say(f"read through {fallback}; {stacks}; {most}")
    with _check(lines, "linear maps") as say:
        kind, by = kept_for(loaded.network)
        say(f"{kind}, {by}" if kind else by, verdict=OK if kind else NOTE)
    if warning := precision_in_words(str(loaded.network.dtype).removeprefix("torch.")):
        with _check(lines, "precision") as say:
            say(warning, verdict=NOTE)
    with _check(lines, "output identity") as say:
        fault, error = loaded.identity_fault, loaded.identity_error()
        if fault:
            say(f"{fault}: no norms", verdict=BAD)
        elif error is None:
            say("the output projection is unknown: no norms for this family", verdict=NOTE)
        else:
            say(f"Σ αf(x) + b_O equals the attention block's output to {error:.0e}")
    with _check(lines, "doubts") as say:
        for note in loaded.notes:
            say(note, verdict=NOTE)
        if not loaded.notes:
            say(
                "none: all tensors are read, and nothing speaks against the vocabulary or the heads"
            )
    with _check(lines, "special tokens") as say:
        tokens = ", ".join(f"{k} {v}" for k, v in loaded.special_tokens.items())
        say(tokens or "none", verdict=OK if tokens else NOTE)
    return loaded


def _corpus(say: Callable[..., None], loaded: Model | None, corpus: Corpus) -> None:
    if loaded is None:
        say(f"{sum(1 for _ in corpus)} documents (not tokenised: no model)")
        return
    counts = make_plan(loaded, corpus, Settings()).counts
    say(
        f"{how_many(counts.documents, 'document')}, {how_many(counts.examples, 'input')}, "
        f"{how_many(counts.tokens, 'token')}, "
        f"{counts.windowed} windowed, {counts.skipped} skipped",
        verdict=NOTE if counts.skipped else OK,
    )
