"""Is a run folder whole at every moment, and is damage noticed?"""

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from headscope.core.whole_file import held, write_whole
from headscope.errors import HeadscopeError, RunFolderError
from headscope.run import shard_files, store
from headscope.run.manifest import storable
from headscope.run.merge_tree import FAN_IN, children, text_of
from headscope.run.netcdf import tree_as_netcdf, tree_of_netcdf
from headscope.run.shard_files import IN_A_FOLDER, pack, spans_over, unpack
from headscope.run.store import RunFolder

STATE = {"b/sums": np.arange(6.0).reshape(2, 3), "a/count": np.array([3], np.int64)}


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.prepare(overwrite=False)
    return folder


def only_shard(folder):
    (file,) = folder.path.glob("shards/*/*.shard")
    return file


def test_a_file_is_as_it_was_when_writing_fails_at_the_last_moment(tmp_path, monkeypatch):
    file = tmp_path / "content"
    write_whole(file, b"old")

    def crash(*_):
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(RunFolderError, match=r"cannot write .*content"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["content"]


KILLED_WHILE_WRITING = """
import os, signal, sys
import numpy as np
from headscope.run.store import RunFolder
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
RunFolder(sys.argv[1]).put_shard(0, {"a": np.zeros(3)})
"""


def test_what_a_killed_process_had_begun_to_write_is_removed(folder):
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, str(folder.path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    drafts = list(folder.path.glob("shards/*/.part-*"))
    assert drafts
    assert folder.finished_shards() == set()
    folder.prepare(overwrite=False)
    assert not list(folder.path.glob("shards/*/.part-*"))


def test_a_state_comes_back_byte_for_byte():
    found = unpack(pack(STATE))
    assert pack(found) == pack(STATE)
    for name, array in STATE.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_rare_counts_come_back_with_their_shape_and_take_little_space():
    """As of millions of bins, of which a text uses some hundreds."""
    counts = np.zeros((3, 400, 700), np.int64)
    counts[1, 7:9, 5] = -4, 1 << 40
    content = pack({"a/pairs": counts, "a/none": np.zeros((1 << 17, 1), np.int32)})
    assert len(content) < 2_000
    found = unpack(content)
    assert found.keys() == {"a/pairs", "a/none"}
    np.testing.assert_array_equal(found["a/pairs"], counts)
    assert (found["a/none"].shape, found["a/none"].dtype) == ((1 << 17, 1), np.int32)
    found["a/pairs"] += 1  # may be written to
    assert found["a/pairs"][0, 0, 0] == 1


def test_equal_states_make_equal_bytes_whatever_their_order():
    assert pack(dict(reversed(STATE.items()))) == pack(STATE)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: content[:20] + bytes([content[20] ^ 1]) + content[21:],
        lambda content: content + b"more",
    ],
    ids=["truncated", "empty", "one bit", "longer"],
)
def test_a_damaged_shard_is_noticed_and_thrown_away(folder, damage):
    folder.put_shard(3, STATE)
    folder.write_manifest({"fingerprint": "f", "spec": {}})
    assert folder.finished_shards() == {3}
    file = only_shard(folder)
    file.write_bytes(damage(file.read_bytes()))
    assert folder.finished_shards() == set()
    assert not file.exists()


def test_a_strange_file_among_the_shards_is_no_shard(folder):
    (folder.path / "shards").mkdir()
    (folder.path / "shards" / "notes.shard").write_bytes(b"x")
    assert folder.finished_shards() == set()


def test_no_folder_of_shards_grows_with_their_number(folder):
    """As many shards and nodes begin in any other."""
    assert sum(IN_A_FOLDER // FAN_IN**level for level in range(5)) < 5_000
    spans = {(0, 0), (0, 7), (4088, 4095), (4096, 4096), (4096, 4103), (99_999, 99_999)}
    for span in spans:
        folder.put_span(span, STATE)
    places = sorted(file.relative_to(folder.path).parts for file in folder.path.glob("*/*/*"))
    assert [(place, name.partition("-")[0]) for _, place, name in places] == [
        ("00000", "00000"),
        ("00000", "00000..00007"),
        ("00000", "04088..04095"),
        ("04096", "04096"),
        ("04096", "04096..04103"),
        ("98304", "99999"),
    ]
    assert folder.named_spans() == spans
    folder.drop_merged(spans)
    assert folder.finished_spans() == spans - {(0, 0), (4096, 4096)}
    assert folder.shard(99_999).keys() == STATE.keys()
    folder.drop_shards()
    assert not (folder.path / "shards").exists()


def test_a_look_near_a_span_sees_what_bears_on_it(folder, monkeypatch):
    """Its children, and all that it lies in, wherever their folders are; not all others."""
    monkeypatch.setattr(shard_files, "IN_A_FOLDER", FAN_IN)
    count, every, nodes = 600, set(), [(0, 599)]
    while nodes:
        node = nodes.pop()
        every.add(node)
        nodes += [child for child in children(node) if child != node]
    for span in every:
        place = folder.path / folder._place(span)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{text_of(span)}-x.shard").touch()
    assert folder.named_spans() == every
    for span in [(0, 0), (9, 9), (599, 599), (8, 15), (64, 127), (512, 599), (0, 599)]:
        around = {s for s in every if s[0] <= span[0] and span[1] <= s[1]} | {*children(span)}
        assert around <= folder.named_spans(span)
    assert len(folder.named_spans((300, 300))) < count / 10


def test_spans_are_counted_where_they_lie():
    spans = [(0, 3), (2, 2), (2, 7), (9, 9)]
    wanted = [sum(first <= at <= last for first, last in spans) for at in range(12)]
    assert spans_over(spans, 12).tolist() == wanted
    assert spans_over([], 3).tolist() == [0, 0, 0]
    assert spans_over({(1, 1)}).tolist() == [0, 1]


def test_a_shard_of_another_run_is_not_taken(folder):
    """Its name and hash are right; only its run is another."""
    folder.owner = "another"
    folder.put_shard(0, STATE)
    folder.owner = "mine"
    folder.write_manifest({"fingerprint": "mine", "spec": {}})
    with pytest.raises(HeadscopeError, match=r"is damaged; run the command again"):
        folder.shard(0)
    assert folder.finished_shards() == set()


def test_shards_without_a_manifest_belong_to_nobody(folder):
    folder.put_shard(0, STATE)
    folder.prepare(overwrite=False)
    assert folder.finished_shards() == set()


def test_a_vanished_shard_is_an_error_that_says_what_to_do(folder):
    with pytest.raises(HeadscopeError, match="vanished; run the command again"):
        folder.shard(1)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    folder = RunFolder(tmp_path)
    for overwrite in (False, True):
        with pytest.raises(RunFolderError, match=r"thesis\.tex.*choose an empty or a new folder"):
            folder.prepare(overwrite=overwrite)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_folder_called_shards_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "pottery.csv").write_text("mine")
    with pytest.raises(RunFolderError, match="holds 'shards' but no run"):
        RunFolder(tmp_path).prepare(overwrite=True)


def test_overwriting_removes_what_a_run_wrote_and_nothing_else(folder, monkeypatch):
    removed, drop = [], store.drop_inside

    def noted(path, name):
        removed.extend([name] if (path / name).is_file() else [])
        drop(path, name)

    monkeypatch.setattr(store, "drop_inside", noted)
    folder.put_shard(0, STATE)
    folder.write_manifest({"fingerprint": "f", "spec": {}})
    folder.put_results(b"results")
    for name in ("figures/entropy.svg", "figures/deep/er.svg", "tables/entropy.csv"):
        with folder.listing():
            write_whole(folder.path / name, b"drawn")
    mine = {"notes.txt", "figures/mine.svg", "tables/mine.csv", "shards/mine.txt"}
    for name in mine:
        (folder.path / name).write_text("mine")
    folder.prepare(overwrite=True)
    left = {p.relative_to(folder.path).as_posix() for p in folder.path.rglob("*") if p.is_file()}
    assert left == mine
    assert removed[-1] == "manifest.json"  # a kill before it leaves a run
    assert not (folder.path / "figures/deep").exists()


def test_a_run_below_that_another_process_writes_to_is_not_overwritten(tmp_path):
    whole = RunFolder(tmp_path, parts="runs")
    for folder in (whole, RunFolder(tmp_path / "runs/a"), RunFolder(tmp_path / "runs/b")):
        folder.write_manifest({"fingerprint": "f", "spec": {}})
    with held(tmp_path / "runs/a"):
        whole.prepare(overwrite=True)
    assert (tmp_path / "runs/a/manifest.json").is_file()
    assert os.listdir(tmp_path / "runs") == ["a"]


@pytest.mark.parametrize("manifest", ["{}", '{"fingerprint": "f", "spec": {}, "checksum": "0"}'])
def test_what_is_no_run_of_ours_is_never_overwritten(tmp_path, manifest):
    for name in ("manifest.json", "report.html", "figures/a.svg", "tables/a.csv", "shards/a.shard"):
        write_whole(tmp_path / name, manifest.encode())
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunFolderError, match=r"no file was changed") as told:
        RunFolder(tmp_path).prepare(overwrite=True)
    assert "--overwrite" not in str(told.value)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"spec": {}}', b"\xff"])
def test_a_damaged_manifest_is_named(folder, content):
    (folder.path / "manifest.json").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"manifest\.json is no manifest"):
        folder.manifest()


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_a_manifest_that_was_changed_is_named(folder, at):
    folder.write_manifest({"fingerprint": "f", "spec": {"seed": 0}, "threads": 1, "counts": [1, 2]})
    file = folder.path / "manifest.json"
    content = bytearray(file.read_bytes())
    content[int(at * len(content))] ^= 1
    file.write_bytes(content)
    with pytest.raises(RunFolderError, match=r"manifest\.json is (no manifest|damaged or was)"):
        folder.manifest()


def test_a_manifest_holds_any_file_name(folder):
    name = "caf\udce9\x1b[31m\n😀"
    folder.write_manifest({"fingerprint": "f", "spec": {}, "name": name})
    assert folder.manifest()["name"] == name


@pytest.mark.parametrize("below", ["file", "file/run", "file/deep/er"])
def test_a_place_below_a_file_is_refused_before_anything_is_written(tmp_path, below):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFolderError, match="is a file; wanted a folder"):
        RunFolder(tmp_path / below).check()
    assert os.listdir(tmp_path) == ["file"]


def test_checking_a_new_place_makes_nothing(tmp_path):
    RunFolder(tmp_path / "a" / "b").check()
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a /proc that refuses new files")
def test_a_place_that_refuses_is_an_error_that_names_it():
    with pytest.raises(RunFolderError, match=r"cannot write .*choose another place"):
        write_whole(Path("/proc/headscope/content"), b"x")


def test_a_full_disk_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        HeadscopeError, match=r"no space left .*\n.*finished parts of a run folder are kept"
    ) as found:
        write_whole(tmp_path / "content", b"x")
    assert found.value.exit_code == 1
    assert not os.listdir(tmp_path)


def test_a_second_process_removes_nothing_of_the_first(folder):
    """Drafts were once cleared before the lock was asked for."""
    draft = folder.path / "shards" / f"{store.DRAFT}being-written"
    draft.parent.mkdir()
    draft.write_bytes(b"half")
    folder.check()
    assert draft.exists()


@pytest.fixture
def tiny_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small tmpfs (root)")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_really_full_disk_leaves_whole_shards_only(tiny_disk):
    folder = RunFolder(tiny_disk / "run")
    folder.prepare(overwrite=False)
    noise = np.random.default_rng(0).random(10_000)  # 80 kB that do not compress
    folder.put_shard(0, {"a": noise})
    folder.put_shard(1, {"a": noise})
    with pytest.raises(HeadscopeError, match="no space left"):
        folder.put_shard(2, {"a": noise})
    assert folder.finished_shards() == {0, 1}
    assert not list(folder.path.glob("*/.part-*"))


def by_xarray(path: Path) -> xr.DataTree:
    """As `xarray.load_datatree` does, which the oldest xarray that is allowed has not."""
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        return tree.map_over_datasets(xr.Dataset.load)


def test_results_are_written_and_read_as_by_xarray(tmp_path):
    one = xr.Dataset(
        {
            "b": (("layer", "word"), np.array([[0.5, np.nan]]), {"units": "nats"}),
            "a": (("rank",), np.array([True, False, True])),
            "none": (("empty",), np.zeros(0)),
            "spelt": ((), "é"),
            "count": (("word",), np.array([1, 2], np.int16)),
            "narrow": (("rank",), np.array([-0.0, np.inf, 1], np.float32), {"n": 3, "share": 0.5}),
            "gap": (("word",), np.array(["x", np.nan], object)),
            "no_words": (("empty",), np.empty(0, object), {"names": ["a", "é"], "of": [0.5]}),
        },
        coords={"layer": [3], "word": ["a", "本"], "token": ("word", ["x", ""])},
        attrs={"kind": "random", "counts": [1, 2]},
    )
    above = xr.Dataset({"at": ("layer", [7.0])}, {"layer": [3]}, {"seed": 0})
    crossed = xr.Dataset({"at": ("far", [1, 2]), "far": ("side", [0.5])})  # named as a dimension
    within = xr.Dataset({"at": (("rank", "own"), np.ones((3, 2)))})  # has a dimension from outside
    parts = {"/": above, "/x": one, "/x/in": within, "/y": crossed, "/y/z": one}
    tree = xr.DataTree.from_dict(parts)
    ours, theirs = tmp_path / "ours.nc", tmp_path / "theirs.nc"
    ours.write_bytes(tree_as_netcdf(tree))
    tree.to_netcdf(theirs, engine="h5netcdf")
    wanted = by_xarray(theirs)
    assert tree_as_netcdf(tree) == ours.read_bytes()
    again = (tree_of_netcdf(io.BytesIO(file.read_bytes())) for file in (ours, theirs))
    for read in (by_xarray(ours), *again):
        assert read.identical(wanted)
        for node, other in zip(read.subtree, wanted.subtree, strict=True):
            for name, variable in node.variables.items():
                same = other.variables[name]
                assert variable.dtype == same.dtype
                assert (
                    variable.dtype == object or variable.values.tobytes() == same.values.tobytes()
                )


def test_a_word_that_hdf5_cannot_hold_is_kept_all_but_that(tmp_path):
    """A treebank with NUL once failed after all was computed."""
    words = xr.Dataset(
        {"word": ("at", np.array(["a\x00b", "c"], object), {"of": "x\x00y"})},
        coords={"relation": ["\ud800", "nsubj"]},
        attrs={"versus": "\x00"},
    )
    kept = storable(words)
    file = tmp_path / "words.nc"
    file.write_bytes(tree_as_netcdf(xr.DataTree.from_dict({"/words": kept.drop_vars("word")})))
    assert by_xarray(file)["words/relation"].values[0] == "\ufffd"
    assert kept["word"].values.tolist() == ["a\ufffdb", "c"]
    assert (kept["word"].attrs, kept.attrs) == ({"of": "x\ufffdy"}, {"versus": "\ufffd"})
    assert "relation" in kept.indexes
    clean = kept.isel(at=[1], relation=[1])
    assert storable(clean) is clean


def test_what_a_killed_report_had_begun_is_cleared_by_the_next(short, tmp_path, monkeypatch):
    folder = shutil.copytree(short.path, tmp_path / "run")
    draft = folder / "tables" / f"{store.DRAFT}half"
    draft.parent.mkdir(exist_ok=True)
    draft.write_bytes(b"half")
    monkeypatch.setattr("headscope.write_report", lambda *_: folder / "report.html")
    store.open_run(folder).report()
    assert not draft.exists()


def test_an_axis_of_former_runs_is_read_under_its_name_of_today(tmp_path):
    """`.sel(method=…)` of xarray does not choose along an axis `method`: it gave all of it."""
    old = xr.Dataset({"ratio": (("layer", "method"), np.eye(2))}, {"method": ["attn_w", "attn_n"]})
    (tmp_path / "atlas.nc").write_bytes(tree_as_netcdf(xr.DataTree.from_dict({"mixing": old})))
    ratio = store.open_run(tmp_path)["mixing"].ratio
    assert ratio.dims == ("layer", "variant")
    assert ratio.sel(variant="attn_n").values.tolist() == [0, 1]
