"""What is installed, and does it work? `headscope analyses` and `headscope doctor`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import click

from headscope.cli import terminal_output
from headscope.cli.options import CorpusOptions, ModelOptions, read_corpus
from headscope.cli.typed_command import argument, flag, group, typed_command
from headscope.errors import HeadscopeError

OK, WARN, BAD = "ok", "note", "BAD"


@dataclass(frozen=True, kw_only=True)
class ListingOptions:
    """What `headscope analyses` is asked."""

    as_json: bool = flag("The same as JSON.", names="--json")


@typed_command("analyses", ListingOptions)
def analyses_command(given: ListingOptions) -> None:
    """List the analyses: what each tells, what it needs, its options, its source."""
    from headscope.core.question import refused
    from headscope.run.analysis import known_analyses, options_of

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "summary": kind.summary,
            "needs": sorted(kind.needs),
            "options": options_of(kind),
            "source": kind.source,
            "from": kind.__module__,
        }
        for name, kind in known_analyses().items()
    ]
    if given.as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        click.echo(f"{row['name']:<12}{row['summary']}")
        click.echo(f"{'':<12}needs {', '.join(row['needs'])}; {row['source']}")
        for option, default in row["options"].items():
            click.echo(f"{'':<12}--set {row['name']}.{option}={default}")
    for why in refused():
        terminal_output.say(f"left out: {why}")


# --- doctor ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """What `headscope doctor` is asked."""

    model: str = argument(default="demo")
    corpus: CorpusOptions = group()
    loading: ModelOptions = group()
    as_json: bool = flag("The findings as JSON.", names="--json")


class Findings:
    """What was checked, one line each."""

    def __init__(self) -> None:
        self.lines: list[dict[str, str]] = []

    def add(self, verdict: str, what: str, found: str) -> None:
        """Note one finding."""
        self.lines.append({"verdict": verdict, "check": what, "found": found})

    @contextmanager
    def check(self, what: str) -> Iterator[Callable[..., None]]:
        """Runs a check; an exception becomes a bad finding, and the next check still runs."""

        def say(found: str, *, verdict: str = OK) -> None:
            self.add(verdict, what, found)

        try:
            yield say
        except (HeadscopeError, ImportError, OSError, RuntimeError, ValueError) as error:
            self.add(BAD, what, str(error).splitlines()[0])


@typed_command("doctor", DoctorOptions)
def doctor_command(given: DoctorOptions) -> None:
    """Check the installation, a MODEL (default: demo) and, if one is given, a corpus."""
    findings = Findings()
    _installation(findings)
    loaded = _model(findings, given)
    if given.corpus.named:
        with findings.check("corpus") as say:
            _corpus(say, loaded, read_corpus(given.corpus))
    if given.as_json:
        click.echo(json.dumps(findings.lines, ensure_ascii=False, indent=2))
    else:
        for line in findings.lines:
            terminal_output.say(f"{line['verdict']:>4}  {line['check']:<22}{line['found']}")
    if any(line["verdict"] == BAD for line in findings.lines):
        raise click.exceptions.Exit(1)


def _installation(findings: Findings) -> None:
    with findings.check("versions") as say:
        from headscope.run.manifest import versions

        say(", ".join(f"{k} {v}" for k, v in versions().items()))
    with findings.check("compiled loops") as say:
        say(f"agree with torch to {_kernel_error():.0e}")
    with findings.check("matrix products") as say:
        import torch

        fast = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        say("oneDNN available, timed at the start of a run" if fast else "stock only")
    with findings.check("accelerator") as say:
        import torch

        if torch.cuda.is_available():
            say(f"{torch.cuda.get_device_name(0)}: use --device cuda")
        else:
            say("none; the CPU is used", verdict=WARN)
    with findings.check("analyses") as say:
        from headscope.core.question import refused
        from headscope.run.analysis import known_analyses

        say(f"{len(known_analyses())} known", verdict=WARN if refused() else OK)
        for why in refused():
            say(f"left out: {why}", verdict=WARN)
    with findings.check("annotation of text") as say:
        from headscope.corpus.annotate.annotated import installed_parsers

        parsers = installed_parsers()
        say(", ".join(parsers) or 'no parser: pip install "headscope[annotate]"',
            verdict=OK if parsers else WARN)  # fmt: skip


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


def _model(findings: Findings, given: DoctorOptions) -> Any:
    loaded = None
    with findings.check("model") as say:
        from headscope.model.model import load

        loaded = load(given.model, **asdict(given.loading))
        say(repr(loaded))
    if loaded is None:
        return None
    with findings.check("attention") as say:
        fallback = "its own eager maps" if loaded.fallback else "transformers' attention registry"
        stacks = ", ".join(f"{s.stack} {s.layers}×{s.heads}" for s in loaded.shapes.values())
        say(f"read through {fallback}; {stacks}; at most {loaded.limit} tokens")
    with findings.check("output identity") as say:
        error = loaded.identity_error()
        if error is None:
            say("the output projection is unknown: no norms for this family", verdict=WARN)
        else:
            say(f"Σ αf(x) + b_O equals the attention block's output to {error:.0e}",
                verdict=OK if error < 1e-3 else BAD)  # fmt: skip
    with findings.check("special tokens") as say:
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
    say(f"{counts.documents} documents, {counts.examples} inputs, {counts.tokens} tokens, "
        f"{counts.windowed} windowed, {counts.skipped} skipped",
        verdict=WARN if counts.skipped else OK)  # fmt: skip
