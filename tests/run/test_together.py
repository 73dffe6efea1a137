"""Do processes that share nothing but a run folder end in the bits of one process?"""

import errno
import gzip
import json
import os
import shutil
import sys
from contextlib import suppress
from types import SimpleNamespace

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import headscope as hs
from headscope.cli.main import group
from headscope.core.whole_file import held
from headscope.errors import (
    CorpusError,
    HeadscopeError,
    InputError,
    RunFolderError,
    RunStopped,
)
from headscope.run import processes, shared_parts
from headscope.run.gather_together import complete_nodes
from headscope.run.merge_tree import children
from headscope.run.processes import (
    ROOM,
    SILENCE,
    Silences,
    TakingPart,
    noting_failure,
    read_record,
    records,
    taking_part,
)
from headscope.run.run_status import run_status
from headscope.run.shard_files import ShardFiles
from headscope.run.shared_parts import order_of_work
from headscope.run.store import RunFolder
from tasks.made import checkpoint

# Each document is a shard of its own.
SHARDS = 11
TEXTS = [f"The cat saw {n} dogs, and {n * n} birds." for n in range(SHARDS)]
CORPUS = hs.corpus.MemoryCorpus(TEXTS)
MANY = {"shard_tokens": 1, "replicates": 2, "analyses": ("entropy",)}


def run_of(model, output, corpus=CORPUS, seed=0, **execution):
    how = hs.Execution(linears="stock", threads=1, **execution)
    return hs.atlas(model, corpus, output=output, **MANY, seed=seed, execution=how)


def there(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def alone(tiny, tmp_path_factory):
    """atlas.nc of one process without a shard."""
    run = run_of(tiny, tmp_path_factory.mktemp("alone") / "run")
    return (run.path / "atlas.nc").read_bytes()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def stop_at(count):
    def progress(done, _total):
        if done >= count:
            raise KeyboardInterrupt

    return progress


# --- leases ---------------------------------------------------------------------------------


def member(folder, number=1, *, clock=None):
    own = TakingPart(folder, (number, 2))
    own._ended.set()  # no heart beats in a test but those that it gives
    if clock is not None:
        own.others = Silences(clock)
    return own


def test_one_process_has_a_lease_at_a_time(folder):
    one, other = member(folder), member(folder, 2)
    assert one.claim("00003")
    assert not other.claim("00003")
    assert other.claim("00004")
    other.release("00003")  # not its own
    assert not other.claim("00003")
    one.release("00003")
    assert other.claim("00003")


def test_the_lease_of_a_process_that_this_machine_has_no_more_is_taken_over(folder):
    one, other = member(folder), member(folder, 2)
    assert one.claim("00003")
    one.tell(started="0")  # as if its number had been given to another since
    assert other.claim("00003")
    one.release("00003")
    assert not member(folder).claim("00003")


def test_a_lease_is_had_though_the_answer_of_the_server_was_lost(folder, monkeypatch):
    own, other, link = member(folder), member(folder, 2), os.link

    def twice(*paths):
        with suppress(FileExistsError):
            link(*paths)
        link(*paths)

    monkeypatch.setattr(os, "link", twice)
    assert own.claim("00003")
    assert not other.claim("00003")


def test_a_lease_that_another_took_over_meanwhile_is_left_to_it(folder, monkeypatch):
    one, faster, slower = member(folder), member(folder, 2), member(folder, 3)
    assert one.claim("00003")
    one.tell(started="0")
    looked = slower.others.dead

    def dead(lease):
        found = looked(lease)
        assert faster.claim("00003")
        return found

    monkeypatch.setattr(slower.others, "dead", dead)
    assert not slower.claim("00003")
    assert os.path.samefile(faster.file, faster.place / "00003.lease")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("what went wrong")])
def test_a_process_that_ends_gives_its_leases_back_and_says_why(folder, error):
    def work():
        with taking_part(folder, (1, 2)) as own:
            own.claim("00003")
            raise error

    with pytest.raises(type(error)):
        work()
    assert member(folder, 2).claim("00003")
    first = next(one for one in records(folder).values() if one["shard"] == "1/2")
    assert first["state"] == ("failed" if str(error) else "stopped")
    assert first["error"] == str(error)


def test_a_process_that_is_loading_is_counted(folder):
    """For minutes `headscope status` said that a folder holds no run."""

    def states():
        return [one["state"] for one in records(folder).values()]

    with noting_failure(folder, (1, 2)):
        (line,) = [line for line in run_status(folder).lines() if line.startswith("  1/2 on")]
        assert f"process {os.getpid()}: loading; 0 shards" in line
        assert run_status(folder).state == "planning"
        with taking_part(folder, (1, 2)):
            assert states() == ["planning"]
        assert states() == []
    assert not (folder / "processes").exists()
    for error, state in ((KeyboardInterrupt(), "stopped"), (ValueError("what"), "failed")):
        with pytest.raises(type(error)), noting_failure(folder, (2, 2)):
            raise error
        assert states() == [state]
        processes.drop_all(folder)


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_silence_is_measured_by_the_observers_own_clock(folder, hours):
    """Whatever the time of a file says, only that it changes counts."""
    now = [0.0]
    one, other = member(folder), member(folder, 2, clock=lambda: now[0])
    one.tell(machine="another")
    assert one.claim("00003")
    changed = one.file.stat().st_mtime_ns + hours * 3600 * 10**9
    for beat in range(4):
        os.utime(one.file, ns=(changed + beat, changed + beat))
        assert not other.claim("00003")
        now[0] += SILENCE - 1
    now[0] += 2
    assert other.claim("00003")


def test_a_record_is_read_again_once_it_has_changed_and_not_before(folder, monkeypatch):
    one, read = member(folder), []
    monkeypatch.setattr(processes, "read_record", lambda file: read.append(1) or read_record(file))
    judge = Silences()
    assert not any(judge.dead(one.file) for _ in range(5))
    assert len(read) == 1
    one.tell(state="failed")
    os.utime(one.file, ns=(1, 1))  # a file system may count time in steps
    assert judge.dead(one.file)
    assert len(read) == 2


@pytest.mark.parametrize("of", [2, 10, 100, 1000])
def test_many_that_wait_look_together_no_more_often_than_they_may(of):
    pauses, seconds, looks = shared_parts._pauses(of), 0.0, 0
    while seconds < 120:
        seconds, looks = seconds + next(pauses), looks + of
    assert looks / seconds < 2 * shared_parts.WAITING_LOOKS
    assert next(shared_parts._pauses(2)) <= 0.05  # seconds: a short run waits little


def test_a_record_that_is_being_written_is_not_that_of_a_dead_process(folder):
    now = [0.0]
    one, other = member(folder), member(folder, 2, clock=lambda: now[0])
    one.claim("00003")
    one.file.write_bytes(b'{"name": "on')
    assert not other.claim("00003")
    now[0] = SILENCE + 1
    assert other.claim("00003")


def test_a_record_never_needs_more_room(folder):
    own = member(folder)
    for text in ("short", "\0" * 5000, "😀" * 5000):
        own.tell(error=text)
        assert own.file.stat().st_size == ROOM
        assert text.startswith(read_record(own.file)["error"])


@pytest.mark.parametrize("link", ["refused", "blind"])
def test_a_file_system_without_exclusive_links_is_refused(folder, monkeypatch, link):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse if link == "refused" else lambda *_: None)
    with pytest.raises(RunFolderError, match=r"without hard links \((Operation|a name was)"):
        TakingPart(folder, (1, 2))
    assert not there(folder)


# --- who does what --------------------------------------------------------------------------


@pytest.mark.parametrize(("shards", "of"), [(20, 3), (2, 5), (1, 1), (7, 7)])
def test_every_process_takes_its_share_first_and_then_all_others(shards, of):
    shares = []
    for number in range(1, of + 1):
        order = order_of_work(shards, (number, of))
        assert sorted(order) == list(range(shards))
        shares += order[: (number * shards // of) - ((number - 1) * shards // of)]
    assert shares == list(range(shards))


def test_a_node_is_merged_once_all_of_its_children_are_there():
    shards = 150
    every, more = set(), [(0, shards - 1)]
    while more:
        node = more.pop()
        if node[0] < node[1]:
            every.add(node)
            more += children(node)
    done = {(n, n) for n in range(shards) if n % 13 or n < 60} | {(64, 71)}
    wanted = [n for n in every - done - {(0, shards - 1)} if set(children(n)) <= done]
    assert complete_nodes(done, shards) == sorted(wanted)
    assert (0, 7) in wanted


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1, 100_001)])
def test_a_share_that_is_none_is_refused(shard):
    with pytest.raises(InputError, match=r"found shard \d+/\d+; wanted 1/N to N/N"):
        hs.Execution(shard=shard)


@pytest.mark.parametrize("more", [{"workers": 2}, {"overwrite": True}])
def test_what_does_not_go_with_a_share_is_refused(more):
    with pytest.raises(InputError, match="--shard cannot be combined with --workers or --overw"):
        hs.Execution(shard=(1, 2), **more)


def test_a_share_needs_a_folder(tiny):
    with pytest.raises(InputError, match="found a shard and no run folder"):
        run_of(tiny, None, shard=(1, 2))


def test_a_comparison_is_not_divided(tiny):
    execution = hs.Execution(shard=(1, 2))
    with pytest.raises(InputError, match="wanted none: it is for atlas, zoo"):
        hs.compare(tiny, tiny, CORPUS, execution=execution)


# --- runs -----------------------------------------------------------------------------------


def test_one_of_two_processes_does_all_if_the_other_never_comes(tiny, alone, folder):
    run = run_of(tiny, folder, shard=(2, 2))
    assert (folder / "atlas.nc").read_bytes() == alone
    assert there(folder) == {"atlas.nc", "manifest.json"}
    assert sum(run.manifest["processors"].values()) == SHARDS
    assert not run.elsewhere
    run_of(tiny, folder, shard=(1, 2))  # only opens it
    assert there(folder) == {"atlas.nc", "manifest.json"}


def test_what_a_dead_process_held_and_left_is_done_by_the_next(tiny, alone, folder):
    """It had a shard, a node and the end of the run; a shard of its own came late."""
    with pytest.raises(RunStopped, match="9 of 11 shards"):
        run_of(tiny, folder, shard=(1, 1), progress=stop_at(9))
    (first,) = (read_record(file) for file in records(folder))
    assert first["state"] == "stopped"
    dead = member(folder)
    for lease in ("00009", "00008..00010", "finish"):
        assert dead.claim(lease)
    dead.tell(state="computing", started="0")
    file = next(folder.glob("shards/*/00000..00007-*"))
    late = file.with_name(file.name.replace("..00007", ""))
    shutil.copy(file, late)
    for draft in (".part-a", "shards/00000/.part-b"):
        (folder / draft).write_bytes(b"half")
    run_of(tiny, folder, shard=(2, 2))
    assert (folder / "atlas.nc").read_bytes() == alone
    assert there(folder) == {"atlas.nc", "manifest.json"}


@pytest.mark.parametrize("which", ["00000..00007", "00008"])
def test_a_damaged_file_is_noticed_where_it_is_merged(tiny, alone, folder, which):
    with pytest.raises(RunStopped):
        run_of(tiny, folder, shard=(1, 1), progress=stop_at(9))
    (file,) = folder.glob(f"shards/*/{which}-*")
    file.write_bytes(file.read_bytes()[:-1])
    run_of(tiny, folder, shard=(1, 1))
    assert (folder / "atlas.nc").read_bytes() == alone


def test_a_process_without_a_share_goes_on_alone(tiny, alone, folder):
    with pytest.raises(RunStopped):
        run_of(tiny, folder, shard=(1, 2), progress=stop_at(9))
    run_of(tiny, folder)
    assert (folder / "atlas.nc").read_bytes() == alone
    assert there(folder) == {"atlas.nc", "manifest.json"}


def test_a_folder_is_shared_by_shares_and_by_nobody_else(tiny, alone, folder, monkeypatch):
    monkeypatch.setattr("headscope.core.whole_file.time.sleep", lambda seconds: None)
    with held(folder, shared=True):
        with pytest.raises(RunFolderError, match=r"another headscope .* is writing to"):
            run_of(tiny, folder)
        run_of(tiny, folder, shard=(1, 2))
        assert (folder.parent / ".run.lock").exists()
    assert not (folder.parent / ".run.lock").exists()
    assert (folder / "atlas.nc").read_bytes() == alone
    with held(folder), pytest.raises(RunFolderError, match="another headscope"):
        run_of(tiny, folder, shard=(1, 2))


def test_results_of_another_process_end_the_work(tiny, alone, folder, tmp_path):
    done = run_of(tiny, tmp_path / "done")

    def other(count, _total):
        if count == 5:
            for name in ("atlas.nc", "manifest.json"):
                shutil.copy(done.path / name, folder / name)

    run = run_of(tiny, folder, shard=(1, 2), progress=other)
    assert run.elsewhere
    assert there(folder) == {"atlas.nc", "manifest.json"}


def test_a_process_whose_record_was_deleted_does_not_wait_for_ever(tiny, folder):
    def clear(done, _total):
        if done == 4:
            shutil.rmtree(folder / "processes")

    with pytest.raises(RunFolderError, match="was deleted: another command has taken"):
        run_of(tiny, folder, shard=(1, 2), progress=clear)


@pytest.mark.parametrize("other", ["seed", "corpus", "model", "version"])
def test_a_process_of_another_spec_is_refused_and_the_others_go_on(
    tiny, alone, folder, other, tmp_path, monkeypatch
):
    with pytest.raises(RunStopped):
        run_of(tiny, folder, shard=(1, 2), progress=stop_at(3))
    more = {
        "seed": {"seed": 1},
        "corpus": {"corpus": hs.corpus.MemoryCorpus(["Another."])},
        "model": {"model": hs.load(checkpoint(tmp_path / "model", seed=1))},
    }.get(other, {})
    if other == "version":
        monkeypatch.setattr("headscope.__version__", "0")
    with pytest.raises(RunFolderError, match="other settings"):
        run_of(**{"model": tiny, **more}, output=folder, shard=(2, 2))
    monkeypatch.undo()
    told = "\n".join(run_status(folder).lines())
    assert "stopped: 3 of 11 shards are done" in told
    assert f"2/2 on {os.uname().nodename}, process {os.getpid()}: refused; 0 shards; " in told
    assert "holds a run with other settings" in told
    run_of(tiny, folder, shard=(1, 2))
    assert (folder / "atlas.nc").read_bytes() == alone


def test_a_partition_that_changes_or_vanishes_after_the_plan_ends_a_process_which_says_so(
    tiny, folder, tmp_path, monkeypatch
):
    """Its size stays, so the plan does too; nothing of the new text is merged."""
    monkeypatch.setattr("headscope.corpus.partitions.PARTITION", 60)
    files = [tmp_path / f"texts/{name}.txt" for name in "abc"]
    files[0].parent.mkdir()
    for file in files:
        file.write_text("A cat sat on the mat, and a dog slept by it.\n")
    corpus = hs.corpus.TextCorpus(files[0].parent)
    assert len(corpus.partitions()) == 3
    alone = run_of(tiny, tmp_path / "alone", corpus)
    with pytest.raises(RunStopped, match="1 of 3 shards"):
        run_of(tiny, folder, corpus, shard=(1, 2), progress=stop_at(1))
    before = files[2].read_text()
    files[2].write_text(before.replace("cat", "dog"))
    with pytest.raises(CorpusError, match="has changed since this run was planned"):
        run_of(tiny, folder, corpus, shard=(2, 2))
    files[2].write_text(before)

    def vanish(*_):
        files[2].unlink(missing_ok=True)

    with pytest.raises(CorpusError, match=r"c.txt cannot be read: No such file"):
        run_of(tiny, folder, corpus, shard=(2, 2), progress=vanish)
    told = [one["error"] for one in run_status(folder).processes if one["state"] == "failed"]
    assert len(told) == 2
    assert all("c.txt" in one for one in told)
    files[2].write_text(before)
    run_of(tiny, folder, corpus, shard=(2, 2))
    assert (folder / "atlas.nc").read_bytes() == (alone.path / "atlas.nc").read_bytes()


def cut(folder):
    whole = gzip.compress(b"A cat sat on the mat. " * 9)
    (folder / "a.txt.gz").write_bytes(whole)
    (folder / "b.txt.gz").write_bytes(whole[:-9])
    return hs.corpus.TextCorpus(folder)


def without_the_column(folder):
    for name, column in (("a", "text"), ("b", "txt")):
        parquet.write_table(pa.table({column: ["A cat."]}), folder / f"{name}.parquet")
    return hs.corpus.ColumnCorpus(folder)


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (cut, "b.txt.gz cannot be read: Truncated compressed stream; wanted a whole file"),
        (without_the_column, "b.parquet has no column 'text' of texts; there are txt"),
    ],
)
def test_a_file_that_cannot_be_planned_ends_a_process_which_says_so(
    tiny, folder, tmp_path, monkeypatch, spoilt, said
):
    """The other file is a partition of its own, which other processes go on from."""
    (tmp_path / "texts").mkdir()
    corpus = spoilt(tmp_path / "texts")
    size = corpus.files[0].stat().st_size
    monkeypatch.setattr("headscope.corpus.partitions.PARTITION", size)
    assert len(corpus.partitions()) == 2
    with pytest.raises(CorpusError, match=said):
        run_of(tiny, folder, corpus, shard=(1, 2))
    (one,) = run_status(folder).processes
    assert one["state"] == "failed"
    assert said in one["error"]
    assert not (folder / "manifest.json").exists()


def test_a_process_that_works_seldom_looks_at_what_all_others_do(tiny, alone, folder, monkeypatch):
    """Time stands still: it looks as it begins, and where there is nothing left to compute."""
    looks, plain = [], ShardFiles.named_spans

    def look(files, near=None):
        looks.append(near)
        return plain(files, near)

    monkeypatch.setattr(ShardFiles, "named_spans", look)
    monkeypatch.setattr(shared_parts, "time", SimpleNamespace(monotonic=lambda: 1.0, sleep=None))
    run_of(tiny, folder, shard=(1, 100))
    assert (folder / "atlas.nc").read_bytes() == alone
    assert len([near for near in looks if near]) == SHARDS + 2  # with two nodes
    assert looks.count(None) <= 5


def test_a_full_disk_ends_one_process_which_says_so(tiny, alone, folder, monkeypatch):
    def fill(done, _total):
        if done == 6:
            monkeypatch.setattr(os, "fsync", full)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(HeadscopeError, match="no space left"):
        run_of(tiny, folder, shard=(2, 2), progress=fill)
    monkeypatch.undo()
    (one,) = run_status(folder).processes
    assert one["state"] == "failed"
    assert "no space left" in one["error"]
    run_of(tiny, folder, shard=(1, 2))
    assert (folder / "atlas.nc").read_bytes() == alone


# --- told, and ended by a report --------------------------------------------------------------


def test_status_tells_the_living_from_the_dead(folder):
    begun = [member(folder, number) for number in (1, 2)]
    silent, killed = (member(folder) for _ in range(2))
    begun[0].tell(state="computing", doing="shard 7", shards=6, seconds=3.0)
    begun[1].tell(state="failed", error="out\nof luck")
    silent.tell(state="computing", doing="shard 9", machine="another")
    past = silent.file.stat().st_mtime - 2 * SILENCE
    os.utime(silent.file, (past, past))
    killed.tell(state="finishing", started="0")
    manifest = {"fingerprint": "f", "spec": {}, "shards": 20, "command": "headscope atlas x"}
    RunFolder(folder).write_manifest(manifest)
    for number in range(8):
        RunFolder(folder).put_shard(number, {})
    status = run_status(folder)
    assert (status.state, status.done, status.shards, status.rate) == ("running", 8, 20, 2.0)
    assert status.seconds_left == 6.0
    head, *lines = status.lines()
    assert head == "running: 8 of 20 shards are done, 120 a minute, 0:00:06 left"
    told = {line.partition(": ")[2] for line in lines}
    assert told == {
        "computing (shard 7); 6 shards",
        "failed; 0 shards; out / of luck",
        "dead; 0 shards; silent for 0:04:00 while computing (shard 9)",
        "dead; 0 shards; ended without a word while finishing",
    }
    summary = json.loads(CliRunner().invoke(group, ["status", str(folder), "--json"]).output)
    assert (summary["state"], summary["done"], len(summary["processes"])) == ("running", 8, 4)


def test_status_of_no_run_is_an_error(folder):
    result = CliRunner().invoke(group, ["status", str(folder)])
    assert isinstance(result.exception, RunFolderError)
    assert "holds no run" in str(result.exception)


def test_a_report_finishes_a_run_whose_shards_are_there(tiny_place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("\n\n".join(TEXTS), "utf-8")
    words = ["atlas", str(tiny_place), "--text", "a.txt", "--analyses", "entropy", "--linears"]
    words += ["stock", "--shard-tokens", "1", "--replicates", "2", "--no-report", "--control"]
    words += ["none", "-o"]
    assert CliRunner().invoke(group, [*words, "alone"]).exit_code == 0
    together = [*words, "run", "--shard", "1/2"]
    monkeypatch.setattr(sys, "argv", ["headscope", *together])
    with monkeypatch.context() as patched:
        patched.setattr("headscope.run.life_cycle.RunInProgress.finish", stop_at(0))
        result = CliRunner().invoke(group, together)
        assert isinstance(result.exception, RunStopped | TypeError)
    status = run_status("run")
    assert status.done == status.shards == SHARDS
    assert "--shard 1/2" not in status.command
    monkeypatch.setattr(hs, "write_report", lambda run, path: path / "report.html")
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    result = CliRunner().invoke(group, ["report", "run"])
    assert isinstance(result.exception, RunFolderError)
    assert "the rest needs model and corpus: " in str(result.exception)
    (tmp_path / "b.txt").rename(tmp_path / "a.txt")
    result = CliRunner().invoke(group, ["report", "run", "--json"])
    assert result.exit_code == 0, result.exception
    assert json.loads(result.stdout)["run"] == "run"
    assert (tmp_path / "run/atlas.nc").read_bytes() == (tmp_path / "alone/atlas.nc").read_bytes()


def test_a_report_asks_no_scheduler_that_a_manifest_names(tiny_place, tmp_path, monkeypatch):
    """What one answers is unpickled: whoever made the folder could run code by it."""
    pytest.importorskip("distributed")
    asked = []
    monkeypatch.setattr("headscope.run.dask_engine.reach", asked.append)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("\n\n".join(TEXTS), "utf-8")
    command = f"headscope atlas {tiny_place} --text a.txt --analyses entropy --linears stock"
    for more in ("--engine dask --scheduler tcp://127.0.0.1:9", "--workers 9"):
        folder = RunFolder(tmp_path / "run")
        folder.write_manifest(
            {"fingerprint": "f", "spec": {}, "shards": 1, "command": f"{command} {more}"}
        )
        folder.owner = "f"
        folder.put_shard(0, {})
        result = CliRunner().invoke(group, ["report", str(folder.path)])
        assert isinstance(result.exception, RunFolderError), result.exception
        assert "holds a run with other settings" in str(result.exception)
    assert asked == []


@pytest.mark.parametrize(
    "command", ["", "rm -rf x", "headscope atlas 'x", "headscope atlas x --trust-remote-code"]
)
def test_a_report_gives_no_command_that_is_not_an_atlas_of_ours(tmp_path, command):
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest({"fingerprint": "f", "spec": {}, "shards": 1, "command": command})
    folder.owner = "f"
    folder.put_shard(0, {})
    result = CliRunner().invoke(group, ["report", str(folder.path)])
    assert isinstance(result.exception, RunFolderError)
    assert "does not run this command by itself" in str(result.exception)


@pytest.mark.parametrize(
    "record", ["[]", '{"shards": "many", "seconds": 1.0}', '{"pid": {}}', "{" * 9, "[" * 99_999]
)
def test_a_record_that_is_none_is_told_as_unknown(folder, record):
    own = member(folder)
    own.file.write_text(record)
    assert list(run_status(folder).lines())[1:] == ["  ? on ?, process ?: unknown; 0 shards"]
