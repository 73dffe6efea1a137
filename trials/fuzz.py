"""Damaged files through every reader, run folders and model folders.

An input is a sample with one of its files changed or gone; it follows from the seed and its number.
It is read in a child that reads many, and is ended by the system where one takes longer than
`seconds` of a processor, or more than MEMORY. Each input ends in one way:

    read      it is still what was wanted
    refused   an error of headscope, in at most MESSAGE characters
    uncaught  any other error, a longer message, or the end of the process
    hang, memory

A damage hits where the file is not that of the sample any more: most must, of every reader. A
sample that is refused as it is says nothing of damage: that ends the trial.
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any

import click

from trials.mutate import damaged
from trials.outcomes import SHARE
from trials.targets import READERS, Files, make_samples, samples

SECONDS, MEMORY, MESSAGE = 2.0, 1 << 30, 2000
A_BYTE = 2e-5  # seconds more: reading text takes a third of it, three times
SILENCE = 120.0  # seconds after which a child that computes nothing is ended
KEPT = Path(__file__).parent / "samples"  # TARGET/SAMPLE/NAME/FILE: what was found before
GONE = ".gone"  # a file of this ending stands for one that is not there
OUTCOMES = ("read", "refused", "uncaught", "hang", "memory")
# Of the inputs: the readers share what is left.
SHARES = {"run": 0.15, "model": 0.2}


@dataclass(frozen=True)
class Input:
    """One damaged sample: the file that was changed; None where it is gone.

    hits  whether the file is not that of the sample any more
    """

    target: str
    sample: str
    file: str
    content: bytes | None
    files: Files
    hits: bool = True

    def write(self, folder: Path) -> Path:
        """Write it, as a folder of this name that is empty before."""
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in (self.files | {self.file: self.content}).items():
            if content is not None:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return folder


def one_input(target: str, kinds: dict[str, Files], number: int, *, seed: int) -> Input:
    """The input of that number."""
    rng = Random(f"{seed} {target} {number}")
    sample = rng.choice(sorted(kinds))
    files = kinds[sample]
    # Small files say what the large ones are: they are changed more often.
    file = rng.choice(sorted(files))
    if rng.random() < 0.01:
        return Input(target, sample, file, None, files)
    other = rng.choice(list(kinds[rng.choice(sorted(kinds))].values()))
    is_json = file.endswith((".json", ".jsonl"))
    content = damaged(files[file], rng, other, is_json=is_json)
    if target == "run" and rng.random() < 0.7:
        return _sealed(Input(target, sample, file, content, files, content != files[file]))
    return Input(target, sample, file, content, files, content != files[file])


def _sealed(given: Input) -> Input:
    """A run folder whose checksums were made to fit, as a stranger may do."""
    from headscope.run.manifest_file import CHECKSUM, checksum_of
    from headscope.run.store import MANIFEST, RESULTS

    files = given.files | {given.file: given.content or b""}
    try:
        manifest = dict(json.loads(files[MANIFEST]))
        if given.file == RESULTS:
            import hashlib

            manifest["results_sha256"] = hashlib.sha256(files[RESULTS]).hexdigest()
        manifest.pop(CHECKSUM, None)
        files[MANIFEST] = json.dumps({**manifest, CHECKSUM: checksum_of(manifest)}).encode()
    except (ValueError, TypeError, RecursionError):
        return given
    return replace(given, content=files[given.file], files=files)


def outcome(given: Input, folder: Path) -> tuple[str, str]:
    """How reading it ends, and of what is not meant, what was raised and where."""
    from headscope.errors import HeadscopeError

    given.write(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[given.target](folder)
    except (HeadscopeError, click.ClickException) as error:
        message = str(error)
        if re.search("allocate|MemoryError|not enough memory", message):
            return "memory", _where(error)
        short = len(message) <= MESSAGE
        return ("refused", "") if short else ("uncaught", f"long message: {_where(error)}")
    except MemoryError as error:
        return "memory", _where(error)
    except BaseException as error:
        return "uncaught", _where(error)
    return "read", ""


def seconds(given: Input) -> float:
    """How long an input may take."""
    return SECONDS + A_BYTE * len(given.content or b"")


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/headscope/" in f.filename] or frames[-1:]
    places = [f"{Path(f.filename).name}:{f.name}" for f in (*own[-2:], frames[-1])]
    return f"{type(error).__name__} {' > '.join(dict.fromkeys(places))}: {str(error)[:100]!r}"


# --- the child ------------------------------------------------------------------------------------

Jobs = dict[str, tuple[int, int]]  # by reader, the inputs from the first to before the second


def _child(jobs: Jobs, seed: int, work: Path) -> None:
    """Read inputs, and say on stdout how each ended."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    folder = Path(tempfile.mkdtemp(dir=work)) / "input"
    for target, (start, stop) in jobs.items():
        kinds = samples(target, work)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        for name, files in kinds.items():  # imports, compiles
            outcome(Input(target, name, "", None, files), folder)
        resource.setrlimit(resource.RLIMIT_AS, (_size() + MEMORY, resource.RLIM_INFINITY))
        for number in range(start, stop):
            given = one_input(target, kinds, number, seed=seed)
            signal.setitimer(
                signal.ITIMER_PROF, seconds(given)
            )  # SIGPROF ends the process, in C too
            kind, where = outcome(given, folder)
            signal.setitimer(signal.ITIMER_PROF, 0)
            out.write(json.dumps([target, number, kind, where, given.hits]) + "\n")
            out.flush()


def _size() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


# --- the driver -------------------------------------------------------------------------------


def fuzz(jobs: Jobs, *, seed: int, work: Path) -> Iterator[tuple[str, int, str, str, bool]]:
    """Reader, number, outcome and place of each input, and whether it is damaged; in order."""
    left = {target: job for target, job in jobs.items() if job[0] < job[1]}
    environ = os.environ | {"OMP_NUM_THREADS": "1"}
    while left:
        command = [sys.executable, "-m", "trials.fuzz", json.dumps(left), str(seed), str(work)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as child:
            silent = False
            for line in _lines(child):
                target, number, kind, where, hit = json.loads(line)
                left = _behind(left, target, number)
                yield target, number, kind, where, hit
            silent = child.poll() is None
            child.kill()
            code = child.wait()
        if left:  # the child died of the next input
            target, (number, _) = next(iter(left.items()))
            hang = silent or code == -signal.SIGPROF
            left = _behind(left, target, number)
            yield (
                target,
                number,
                "hang" if hang else "uncaught",
                f"the process ended with {code}",
                True,
            )


def _lines(child: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """What it says, until it ends or is silent for too long."""
    assert child.stdout is not None
    held = b""
    while select.select([child.stdout], [], [], SILENCE)[0]:
        if not (more := os.read(child.stdout.fileno(), 1 << 16)):
            child.wait()
            return
        *lines, held = (held + more).split(b"\n")
        yield from lines


def _behind(left: Jobs, target: str, number: int) -> Jobs:
    """The jobs after this input is done."""
    after = {
        name: job
        for name, job in left.items()
        if list(left).index(name) >= list(left).index(target)
    }
    after[target] = (number + 1, left[target][1])
    return {name: job for name, job in after.items() if job[0] < job[1]}


def keep(given: Input, where: str) -> Path:
    """Keep a finding among the samples."""
    name = "".join(c if c.isalnum() else "-" for c in where)[:70].strip("-").lower()
    path = KEPT / given.target / given.sample / name / (given.file + GONE * (given.content is None))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(given.content or b"")
    return path


def kept(work: Path) -> Iterator[Input]:
    """What was found before, and what was broken by hand."""
    for path in sorted(path for path in KEPT.rglob("*") if path.is_file()):
        target, sample, _, *rest = path.relative_to(KEPT).parts
        files = samples(target, work)[sample]
        file = "/".join(rest)
        content = None if file.endswith(GONE) else path.read_bytes()
        given = Input(target, sample, file.removesuffix(GONE), content, files)
        yield given
        if target == "run" and content is not None:  # its results were another run's
            yield _sealed(given)


def refused_unharmed(target: str, work: Path) -> dict[str, str]:
    """Samples of a reader that are not read as they are, and why."""
    folder = work / "unharmed"
    ends = {
        name: outcome(Input(target, name, "", None, files), folder)
        for name, files in samples(target, work).items()
    }
    return {name: " ".join(end) for name, end in ends.items() if end[0] != "read"}


def shares(inputs: int, targets: tuple[str, ...]) -> dict[str, int]:
    """How many inputs each reader gets."""
    names = targets or tuple(READERS)
    own = {name: SHARES[name] for name in names if name in SHARES}
    rest = [name for name in names if name not in own]
    if not rest:
        return {name: inputs // len(names) for name in names}
    part = (1 - sum(own.values())) / len(rest)
    return {name: round(inputs * own.get(name, part)) for name in names}


@click.command("fuzz")
@click.option("--inputs", "count", default=1000, show_default=True, help="How many inputs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the changes.")
@click.option("--first", default=0, help="Number of the first input of each reader.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=click.Choice(list(READERS)),
    help="Readers; by default all.",
)
def command(count: int, seed: int, first: int, targets: tuple[str, ...]) -> None:
    """Damaged files through every reader, run folders and model folders."""
    found: dict[str, list[Any]] = {}
    totals, hits = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        make_samples(work)
        row = "{:<10}" + "{:>9}" * (2 + len(OUTCOMES))
        click.echo(row.format("reader", "inputs", *OUTCOMES, "hit"))
        missed = list[str]()
        for name in targets or READERS:
            if refused := refused_unharmed(name, work):
                raise click.ClickException(f"samples of {name} are refused as they are: {refused}")
        jobs = {name: (first, first + part) for name, part in shares(count, targets).items()}
        for target, results in groupby(fuzz(jobs, seed=seed, work=work), key=itemgetter(0)):
            counts: Counter[str] = Counter()
            kinds = samples(target, work)
            for _, number, kind, where, hit in results:
                counts[kind] += 1
                hits[target] += hit
                if kind in ("read", "refused"):
                    continue
                key = f"{target} {kind} {number if 'ended' in where else where.split(': ')[0]}"
                if key not in found:
                    path = keep(one_input(target, kinds, number, seed=seed), where)
                    found[key] = [0, where, path]
                found[key][0] += 1
            totals += counts
            click.echo(
                row.format(target, counts.total(), *(counts[o] for o in OUTCOMES), hits[target])
            )
            if hits[target] < SHARE * counts.total():
                missed.append(target)
    click.echo(row.format("all", totals.total(), *(totals[n] for n in OUTCOMES), hits.total()))
    if missed or not totals:
        click.echo(f"FAILED: too few inputs are damaged; wanted {SHARE:.0%}: {', '.join(missed)}")
    for key, (times, where, path) in found.items():
        click.echo(f"{times:>6} × {key}\n         {where}\n         {path.relative_to(KEPT)}")
    sys.exit(1 if found or missed or not totals else 0)


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
