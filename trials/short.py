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


@click.command("short")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(keep: Path) -> None:
    """A few of each: file operations, power losses, kills, histories."""
    shim.begin_again("trials")
    with Tally(keep.absolute()).told() as tally, bench_of(SCENARIOS["atlas"]) as bench:
        attempt_all(bench, list(shim.KINDS), tally, every=41)
        if isinstance(shim.faults(), shim.Native):
            power_loss.attempt_all(bench, tally, every=13)
        kills.attempt_all(bench, tally, drivers=1, workers=0, pairs=1, disks=1)
        together.attempt_all(bench, tally, runs=1, kills=3, shards=20)
        if find_spec("distributed"):
            dask = dask_kills.Trial(bench, Random(1))
            dask_kills.tell(tally, "dask", *dask.of_command(), bench)
        stateful.attempt_all(bench, tally, examples=2, steps=4)
