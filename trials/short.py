"""Short forms of the trials that fork, as the suite runs them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from random import Random

import click

from trials import dask_kills, kills, power_loss, shim, stateful, together
from trials.desk import SCENARIOS
from trials.file_operations import attempt_all, bench_of
from trials.outcomes import Tally

EARLY = 3  # a seed whose first moments are early: whatever the machine does besides, they hit


@click.command("short")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(keep: Path) -> None:
    """A few of each: file operations, power losses, kills, a history."""
    shim.begin_again("trials")
    with Tally(keep.absolute()).told() as tally, bench_of(SCENARIOS["atlas"]) as bench:
        attempt_all(bench, list(shim.KINDS), tally, every=41)
        if isinstance(shim.faults(), shim.Native):
            power_loss.attempt_all(bench, tally, every=13)
        kills.attempt_all(
            bench, tally, drivers=1, pairs=1, disks=int(kills.may_mount()), seed=EARLY
        )
        tally.share["together"] = 0.5  # one of three may end first
        together.attempt_all(bench, tally, runs=1, kills=3, shards=20)
        if find_spec("distributed"):
            dask = dask_kills.Trial(bench, Random(1))
            dask_kills.tell(tally, "dask", *dask.of_command(), bench)
        # Last, as what these are forked from is a process that stays.
        kills.attempt_workers(bench, tally, workers=2, begin=kills.apart, seed=EARLY)
        stateful.attempt_one(bench, tally)
