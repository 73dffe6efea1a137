"""Is a plan that processes make together the plan of one, whoever dies?"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

import headscope as hs
from headscope.corpus.document import Example, Frame, FrameElement, Mention, Word
from headscope.run import shared_plan as module
from headscope.run.plan import make_plan, plan_partition
from headscope.run.processes import TakingPart, drop_all
from headscope.run.settings import Settings
from headscope.run.shared_parts import order_of_work
from headscope.run.shared_plan import part_of_state, shared_plan, state_of_part
from run.test_plan import SMALL, Divided, facts

COUNT = len(Divided.CUTS) - 1


def whole(example):
    return {
        name: (value.dtype, value.tolist()) if isinstance(value, np.ndarray) else value
        for name, value in asdict(example).items()
    }


def same(first, second):
    assert (first.shards, first.digest, facts(first)) == (
        second.shards,
        second.digest,
        facts(second),
    )
    for one, other in zip(first.stored_inputs, second.stored_inputs, strict=True):
        assert whole(one) == whole(other)


@pytest.fixture
def planned(monkeypatch):
    """Which partitions this process has planned; it is stopped before the one that is named."""
    found, stop = [], []

    def plan(encoder, partition, settings):
        number = int(partition.name.removeprefix("part "))
        if number in stop:
            raise KeyboardInterrupt
        found.append(number)
        return plan_partition(encoder, partition, settings)

    monkeypatch.setattr(module, "plan_partition", plan)
    return found, stop


def member(folder, number):
    own = TakingPart(folder, (number, 2))
    own._ended.set()
    return own


def test_a_plan_of_several_processes_is_that_of_one(demo, tmp_path, planned, monkeypatch):
    """One was stopped, one died with a lease, and one file was damaged."""
    monkeypatch.setattr("headscope.run.readings.MOST_SAMPLED", 1000)
    alone, (found, stop) = make_plan(demo, Divided(), SMALL), planned
    first = member(tmp_path, 1)
    stop[:] = [order_of_work(COUNT, (1, 2))[4]]
    with pytest.raises(KeyboardInterrupt):
        shared_plan(demo, Divided(), SMALL, first)
    first.end("stopped")
    assert found == order_of_work(COUNT, (1, 2))[:4]
    dead = member(tmp_path, 1)
    assert dead.claim(f"partition-{stop[0]:05d}")
    dead.tell(state="planning", started="0")
    (file,) = tmp_path.rglob(f"{found[1]:05d}-*.shard")
    file.write_bytes(file.read_bytes()[:-1])
    before = [*found]
    stop.clear()
    same(shared_plan(demo, Divided(), SMALL, member(tmp_path, 2)), alone)
    assert sorted(found) == sorted([*range(COUNT), before[1]])
    found.clear()
    same(shared_plan(demo, Divided(), SMALL, member(tmp_path, 1)), alone)
    assert not found  # all was read
    drop_all(tmp_path)
    assert not (tmp_path / "processes").exists()


def test_who_comes_when_all_is_planned_reads_one_file(demo, tmp_path, planned):
    shared_plan(demo, Divided(), SMALL, member(tmp_path, 1))
    planned[0].clear()
    for at in range(COUNT):
        (file,) = tmp_path.rglob(f"{at:05d}-*.shard")
        file.unlink()
    same(
        shared_plan(demo, Divided(), SMALL, member(tmp_path, 2)), make_plan(demo, Divided(), SMALL)
    )
    assert not planned[0]


def test_a_plan_under_other_settings_is_another(demo, tmp_path, planned):
    shared_plan(demo, Divided(), SMALL, member(tmp_path, 1))
    planned[0].clear()
    other = Settings(shard_tokens=400, seed=1)
    same(
        shared_plan(demo, Divided(), other, member(tmp_path, 1)), make_plan(demo, Divided(), other)
    )
    assert len(planned[0]) == COUNT


def test_a_process_that_comes_when_the_results_are_there_plans_alone(demo, tmp_path):
    (tmp_path / "atlas.nc").write_bytes(b"")
    same(
        shared_plan(demo, Divided(), SMALL, member(tmp_path, 1)), make_plan(demo, Divided(), SMALL)
    )


def test_all_of_an_example_is_kept(demo):
    """Words, mentions, frames, and a document's name that is no Unicode."""
    ids = np.arange(3)
    example = Example(
        "one",
        "d\udcff",
        ids,
        ids % 2,
        ids > 1,
        ids - 1,
        (Word("a", "X", "Y", -1, "root", False), Word("b")),
        (Mention("e", 0, 1, 0, "proper"),),
        (Frame("F", 0, 0, (FrameElement("g", 1, 1, False),)),),
    )
    corpus = hs.corpus.MemoryCorpus(["A text."])
    part = plan_partition(module.encoder_for(demo, SMALL), corpus, SMALL)
    reading = part.readings["texts"]
    reading.add([example])
    unpacked = part_of_state(state_of_part(part), SMALL)
    again = unpacked.readings["texts"]
    assert [whole(e) for e in again.stored_inputs.held] == [
        whole(e) for e in reading.stored_inputs.held
    ]
    assert (again.counts, again.lengths) == (reading.counts, reading.lengths)
    assert again.annotations.relations == {"root": 2}
    assert asdict(unpacked.counts) == asdict(part.counts)
