"""A folder through runs, faults, damage and changed inputs, in any order: what is in it is right.

Whatever happened before, a command that ends well leaves the results of the model, the corpus and
the settings as they are now, to the bit; all else is a clear error. What opens was once the result
of some spec.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import click
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from trials import shim
from trials.desk import ATLAS, OUT, Scenario
from trials.file_operations import HIT, Bench, armed, bench_of
from trials.forked import Ended, forked
from trials.outcomes import Tally
from trials.power_loss import open_results

RUN = (*ATLAS, "--no-report")
AIMS = 40  # operations of a run that surely are
Spec = tuple[int, int, int]  # model, corpus, seed


@click.command("stateful")
@click.option("--examples", default=60, show_default=True, help="Histories of a folder.")
@click.option("--steps", default=12, show_default=True, help="Steps of each, at most.")
@click.option("--seed", default=0, show_default=True, help="Seed of the histories.")
@click.option("--keep", default="trials-failed", show_default=True, type=click.Path(path_type=Path))
def command(examples: int, steps: int, seed: int, keep: Path) -> None:
    """Runs, faults, damage, changed inputs in any order: the results are right, or an error."""
    shim.begin_again("trials")
    with Tally(keep.absolute()).told() as tally, bench_of(Scenario("stateful", RUN)) as bench:
        attempt_all(bench, tally, examples=examples, steps=steps, seed=seed)


def attempt_all(bench: Bench, tally: Tally, *, examples: int, steps: int, seed: int = 0) -> None:
    """So many histories; hypothesis makes a failed one short and tells it."""
    from hypothesis import seed as seeded

    how = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    judged(bench, tally, lambda: run_state_machine_as_test(seeded(seed)(World), settings=how))


def attempt_one(bench: Bench, tally: Tally) -> None:
    """A history of a fault, damage and a changed corpus, each followed by the command."""

    def history() -> None:
        world = World()
        world.begin()
        world.fail(kind="broken", at=AIMS // 2, anew=False)
        world.run()
        world.harm(world.run_folder / "atlas.nc", 4000, bit=1)
        world.read()
        world.run()
        world.change(which=1)
        world.overwrite()

    judged(bench, tally, history)


def judged(bench: Bench, tally: Tally, histories: Callable[[], None]) -> None:
    """Histories on this desk, of which none may end wrong."""
    World.desk, World.tally, World.expected = bench.desk, tally, {}
    lay_variants(bench.desk)
    try:
        histories()
    except AssertionError as error:
        notes = "\n".join(getattr(error, "__notes__", ()))
        tally.add("history", "wrong", f"{error}\n{notes}", files=bench.desk / OUT)


def lay_variants(desk: Path) -> None:
    """Two models and two corpora, of which the desk always has one."""
    from tasks.made import checkpoint

    (desk / "model").rename(desk / "model-0")
    checkpoint(desk / "model-1", seed=1)
    (desk / "a.txt").rename(desk / "a-0.txt")
    (desk / "a-1.txt").write_text("\n\n".join(["a cat , the b ."] * 7), "utf-8")


class World(RuleBasedStateMachine):
    """One run folder, and what it is given to read."""

    desk: ClassVar[Path]
    tally: ClassVar[Tally]
    expected: ClassVar[dict[Spec, bytes]]

    @initialize()
    def begin(self) -> None:
        self.spec: Spec = (0, 0, 0)
        shutil.rmtree(self.desk / OUT)
        (self.desk / OUT).mkdir()
        self.lay()

    @property
    def run_folder(self) -> Path:
        return self.desk / OUT / "run"

    def lay(self) -> None:
        """Give the command the inputs of the spec."""
        model, corpus, _ = self.spec
        shutil.rmtree(self.desk / "model", ignore_errors=True)
        shutil.copytree(self.desk / f"model-{model}", self.desk / "model")
        shutil.copy(self.desk / f"a-{corpus}.txt", self.desk / "a.txt")

    def arguments(self, *more: str) -> tuple[str, ...]:
        return (*RUN, "--seed", str(self.spec[2]), *more)

    def result(self) -> bytes:
        """What a new folder would hold."""
        if self.spec not in self.expected:
            fresh = self.desk / "fresh"
            shutil.rmtree(fresh, ignore_errors=True)
            work = Scenario("fresh", self.arguments("-o", "fresh")).work(self.desk)
            done = forked(work, self.desk / "streams")
            assert done.code == 0, done.err
            self.expected[self.spec] = (fresh / "atlas.nc").read_bytes()
        return self.expected[self.spec]

    def judge(self, what: str, ended: Ended, *, hit: bool = True) -> None:
        """A command that is done has the results of the spec; another says why clearly."""
        assert ended.code is not None, f"{what} hung"
        if ended.code == 0:
            assert (self.run_folder / "atlas.nc").read_bytes() == self.result(), f"{what}: wrong"
            self.tally.add(what, "the spec's results", "", hit)
        elif ended.code < 0:
            self.tally.add(what, "killed", "", hit)
        else:
            assert ended.clear, f"{what}: {ended.err}"
            self.tally.add(what, "clear error", "", hit)

    @rule()
    def run(self) -> None:
        work = Scenario("run", self.arguments()).work(self.desk)
        self.judge("run", forked(work, self.desk / "streams"))

    @rule()
    def overwrite(self) -> None:
        work = Scenario("run", self.arguments("--overwrite")).work(self.desk)
        self.judge("overwrite", forked(work, self.desk / "streams"))

    @rule(kind=st.sampled_from(sorted(shim.KINDS)), at=st.integers(0, AIMS), anew=st.booleans())
    def fail(self, kind: str, at: int, anew: bool) -> None:
        results = self.run_folder / "atlas.nc"
        if results.exists():  # else there is nothing to do
            anew = True
            if results.read_bytes() == self.result():
                self.change(which=2)
        self.result()  # a kill may come after it was written
        scenario = Scenario("run", self.arguments(*["--overwrite"] * anew))
        work = partial(armed, scenario, self.desk, kind, at, None)
        ended = forked(work, self.desk / "streams")
        self.judge("fault", ended, hit=(self.desk / HIT).exists())

    @rule(which=st.integers(0, 2))
    def change(self, which: int) -> None:
        self.spec = tuple(v ^ (n == which) for n, v in enumerate(self.spec))  # type: ignore[assignment]
        self.lay()

    def there(self) -> list[Path]:
        return sorted(f for f in (self.desk / OUT).rglob("*") if f.is_file() and f.stat().st_size)

    @precondition(lambda self: self.there())
    @rule(data=st.data())
    def corrupt(self, data: Any) -> None:
        file = data.draw(st.sampled_from(self.there()), label="file")
        at = data.draw(st.integers(0, file.stat().st_size - 1), label="at")
        self.harm(file, at, bit=data.draw(st.none() | st.integers(0, 7), label="bit"))

    def harm(self, file: Path, at: int, *, bit: int | None) -> None:
        """Flip a bit of a file, or cut the file off there."""
        content = bytearray(file.read_bytes())
        if bit is None:
            del content[at:]
        else:
            content[at] ^= 1 << bit
        self.tally.add("damage", "written", "", file.read_bytes() != content)
        file.write_bytes(content)

    @precondition(lambda self: self.there())
    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        if data.draw(st.booleans(), label="all"):
            shutil.rmtree(self.run_folder, ignore_errors=True)
        else:
            data.draw(st.sampled_from(self.there()), label="file").unlink()

    @rule()
    def read(self) -> None:
        """What opens is the result of a spec; without a manifest nobody can tell."""
        sealed = (self.run_folder / "manifest.json").is_file()
        ended = forked(partial(open_results, self.desk / OUT), self.desk / "streams")
        assert ended.code == 0 or ended.clear, ended.err
        if sealed and ended.out:
            found = (self.run_folder / "atlas.nc").read_bytes()
            assert found in self.expected.values(), "read: results that nobody made"
        self.tally.add("read", "opened" if ended.out else "nothing or refused", "")
