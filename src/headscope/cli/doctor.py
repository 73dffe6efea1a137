"""`headscope doctor`: check the installation, a model and a corpus, or the folder of a run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from headscope.cli.options import CorpusOptions, json_flag, read_corpus
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import group, typed_command
from headscope.core.options import Options, argument
from headscope.core.wording import precision_in_words
from headscope.errors import HeadscopeError
from headscope.tasks.task_request import Loading

OK, WARN, BAD = "ok", "note", "BAD"
COLUMNS = ("verdict", "check", "found")


class _DoctorOptions(Options):
    model: str = argument(default="demo")
    corpus: CorpusOptions = group()
    loading: Loading = group()
    as_json: bool = json_flag("The findings as JSON.")


Findings = list[dict[str, str]]


@contextmanager
def _check(findings: Findings, what: str) -> Iterator[Callable[..., None]]:
    """Runs a check; an exception becomes a bad finding, and the next check still runs."""

    def say(finding: str, *, verdict: str = OK) -> None:
        findings.append({"verdict": verdict, "check": what, "found": finding})

    try:
        yield say
    except (HeadscopeError, ImportError, OSError, RuntimeError, ValueError) as error:
        say(str(error).splitlines()[0], verdict=BAD)


@typed_command("doctor", _DoctorOptions)
def doctor_command(options: _DoctorOptions) -> None:
    """Check the installation, a MODEL (default: demo) and, if one is given, a corpus.

    Of the folder of a run: what in it is as it was written, and what cannot be trusted.

    \b
    headscope doctor demo --text wiki.txt
    headscope doctor atlas-demo
    """
    from headscope.run.folder_check import check_folder, is_run

    findings: Findings = []
    if is_run(options.model):
        findings += (dict(zip(COLUMNS, line, strict=True)) for line in check_folder(options.model))
    else:
        _all(findings, options)
    lines = (f"{line['verdict']:>4}  {line['check']:<22}{line['found']}" for line in findings)
    tell(lines, findings if options.as_json else None, ensure_ascii=False, indent=2)
    if any(line["verdict"] == BAD for line in findings):
        raise click.exceptions.Exit(1)


def _all(findings: Findings, options: _DoctorOptions) -> None:
    _installation(findings)
    loaded = _model(findings, options)
    if options.corpus.named:
        with _check(findings, "corpus") as say:
            _corpus(say, loaded, read_corpus(options.corpus))


def _installation(findings: Findings) -> None:
    with _check(findings, "versions") as say:
        from headscope.run.manifest import versions

        say(", ".join(f"{k} {v}" for k, v in versions().items()))
    with _check(findings, "compiled loops") as say:
        say(f"agree with torch to {_kernel_error():.0e}")
    with _check(findings, "matrix products") as say:
        import torch

        fast = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        say("oneDNN available, timed at the start of a run" if fast else "stock only")
    with _check(findings, "accelerator") as say:
        import torch

        if torch.cuda.is_available():
            say(f"{torch.cuda.get_device_name(0)}: use --device cuda")
        else:
            say("none; the CPU is used", verdict=WARN)
    with _check(findings, "analyses") as say:
        from headscope.claims.question import refused
        from headscope.run.analysis import known_analyses

        say(f"{len(known_analyses())} known", verdict=WARN if refused() else OK)
        for why in refused():
            say(f"left out: {why}", verdict=WARN)
    with _check(findings, "annotation of text") as say:
        from headscope.corpus.annotate.parsers import installed_parsers

        parsers = installed_parsers()
        say(
            ", ".join(parsers) or 'no parser: pip install "headscope[annotate]"',
            verdict=OK if parsers else WARN,
        )


def _kernel_error() -> float:
    """Largest difference between the compiled scan and torch on random maps."""
    import torch

    from headscope.model import kernels
    from headscope.model.layer import LN2

    maps = torch.rand(1, 2, 9, 9, generator=torch.Generator().manual_seed(0)).softmax(-1)
    entropy, columns = torch.zeros(1, 2, 9), torch.zeros(1, 2, 2, 9)
    lengths, classes = torch.tensor([9]), torch.zeros(1, 9, dtype=torch.long)
    arrays = (maps, lengths, classes, entropy, columns)
    kernels.scan(*(a.numpy() for a in arrays))
    error = (entropy * LN2 - torch.special.entr(maps).sum(-1)).abs().max()
    error = torch.maximum(error, (columns[:, :, 0] - maps.sum(2)).abs().max())
    if error > 1e-5:
        raise RuntimeError(f"compiled loops differ from torch by {float(error):.1e}")
    return float(error)


def _model(findings: Findings, options: _DoctorOptions) -> Any:
    loaded = None
    with _check(findings, "model") as say:
        from headscope.model.model import load

        loaded = load(options.model, **asdict(options.loading))
        say(repr(loaded))
    if loaded is None:
        return None
    with _check(findings, "attention") as say:
        fallback = "its own eager maps" if loaded.fallback else "transformers' attention registry"
        stacks = ", ".join(
            f"{s.stack} " + (s.size if s.others else f"{s.layers}×{s.heads}")
            for s in loaded.shapes.values()
        )
        most = "at most {} tokens ({})".format(*loaded.positions)
        say(f"read through {fallback}; {stacks}; {most}")
    if warning := precision_in_words(str(loaded.network.dtype).removeprefix("torch.")):
        with _check(findings, "precision") as say:
            say(warning, verdict=WARN)
    with _check(findings, "output identity") as say:
        fault, error = loaded.identity_fault, loaded.identity_error()
        if fault:
            say(f"{fault}: no norms", verdict=BAD)
        elif error is None:
            say("the output projection is unknown: no norms for this family", verdict=WARN)
        else:
            say(f"Σ αf(x) + b_O equals the attention block's output to {error:.0e}")
    with _check(findings, "doubts") as say:
        for note in loaded.notes:
            say(note, verdict=WARN)
        if not loaded.notes:
            say("none: the network reads all tensors; its vocabulary goes with it, or cannot tell")
    with _check(findings, "special tokens") as say:
        tokens = ", ".join(f"{k} {v}" for k, v in loaded.special_tokens.items())
        say(tokens or "none", verdict=OK if tokens else WARN)
    return loaded


def _corpus(say: Callable[..., None], loaded: Any, corpus: Any) -> None:
    from headscope.run.plan import make_plan
    from headscope.run.settings import Settings

    if loaded is None:
        say(f"{sum(1 for _ in corpus)} documents (not tokenised: no model)")
        return
    counts = make_plan(loaded, corpus, Settings()).counts
    say(
        f"{counts.documents} documents, {counts.examples} inputs, {counts.tokens} tokens, "
        f"{counts.windowed} windowed, {counts.skipped} skipped",
        verdict=WARN if counts.skipped else OK,
    )
