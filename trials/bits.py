"""One bit of one file of a run folder is flipped: does `headscope doctor` say so?

So many flips of every kind of file: manifest, results, list, tables, figures, pages, the shards of
a finished run and those of one that is not.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import click

from trials.file_operations import memory
from trials.outcomes import Tally
from trials.stranger import Stranger
from trials.stranger_kinds import unfinished
from trials.strangers import made

NOT_OF_RESULTS = (".lock", "processes")  # what says who writes now, and who has


@click.command("bits")
@click.option("--flips", default=30, show_default=True, help="Of each kind of file.")
@click.option("--seed", default=0, show_default=True, help="Seed of the files and bits.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(flips: int, seed: int, keep: Path) -> None:
    """Flip bits of every kind of file of a run, and look whether doctor tells."""
    draws = random.Random(seed)
    with (
        Tally(keep.absolute()).told() as tally,
        tempfile.TemporaryDirectory(prefix="trial-", dir=memory()) as place,
    ):
        sound = made(Path(place))
        written(sound)
        attempt_all(sound, tally, flips, draws)
        begun = Stranger(Path(place) / "begun", sound, "", draws)
        shutil.rmtree(begun.run / "tables")
        unfinished(begun)
        attempt_all(begun.run, tally, flips, draws, only=".shard", of="unfinished ")


def written(run: Path) -> None:
    """Write all that commands write into a run folder."""
    from headscope import open_run
    from headscope.report.build import write_report

    write_report(open_run(run), run)


def attempt_all(
    run: Path, tally: Tally, flips: int, draws: random.Random, *, only: str = "", of: str = ""
) -> None:
    """So many flips of each kind of file; each is turned back."""
    bad = faults(run)
    kinds = defaultdict(list)
    for file in sorted(file for file in run.rglob("*") if file.is_file()):
        name = file.relative_to(run).as_posix()
        if file.stat().st_size and not name.startswith(NOT_OF_RESULTS):
            kinds[file.suffix or file.name].append(file)
    for kind, files in kinds.items():
        for _ in range(flips if only in ("", kind) else 0):
            file = draws.choice(files)
            before, at = file.read_bytes(), draws.randrange(8 * file.stat().st_size)
            content = bytearray(before)
            content[at // 8] ^= 1 << at % 8
            file.write_bytes(content)
            told = faults(run) - bad
            file.write_bytes(before)
            outcome = "told" if told else "wrong"
            tally.add(f"{of}{kind}", outcome, f"bit {at} of {file.relative_to(run)}")


def faults(run: Path) -> set[tuple[str, str, str]]:
    """What doctor says is not as it was written."""
    from headscope.run.folder_check import BAD, check_folder

    return {line for line in check_folder(run) if line[0] == BAD}
