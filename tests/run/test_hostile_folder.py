"""Is a run folder of a stranger data, whatever lies in it?"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from h5py import h5d, h5p, h5s, h5t

import headscope as hs
from experiments.probes.made import treebank
from headscope.cli.main import group
from headscope.core.whole_file import write_whole
from headscope.errors import HeadscopeError, RunFolderError
from headscope.run import results_check, shard_files
from headscope.run.netcdf import tree_of_netcdf
from headscope.run.processes import drop_all, records
from headscope.run.results_check import HEAP, check_objects
from headscope.run.run_status import run_status
from headscope.run.shard_files import pack
from headscope.run.store import RunFolder, open_run

SECRET = "a secret of the user"


@pytest.fixture
def run(short, tmp_path):
    """A copy of a finished run, beside a folder that is none of its business."""
    (tmp_path / "outside").mkdir()
    for name in ("a.csv", "00000-x.shard", ".part-x", "report.html"):
        (tmp_path / "outside" / name).write_text(SECRET)
    shutil.copytree(short.path, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def outside(run):
    """What lies outside, as text by name; it stays so."""
    place = run.parent / "outside"
    before = {file.name: file.read_text() for file in place.iterdir()}
    yield place
    assert {file.name: file.read_text() for file in place.iterdir()} == before


def resealed(run: Path, change: Callable[[h5py.File], object]) -> Path:
    """The run with other results, and a checksum that fits, as anybody can make it."""
    with h5py.File(run / "atlas.nc", "r+") as file:
        change(file)
    folder = RunFolder(run)
    manifest = folder.manifest()
    digest = hashlib.sha256((run / "atlas.nc").read_bytes()).hexdigest()
    folder.write_manifest({**manifest, "results_sha256": digest})
    return run


# --- results --------------------------------------------------------------------------------------


def _external(file: h5py.File) -> None:
    file.create_dataset(
        "entropy/raw", (len(SECRET),), "u1", external=[("../outside/a.csv", 0, len(SECRET))]
    )


def _virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((2,), "f8")
    layout[:] = h5py.VirtualSource("elsewhere.h5", "x", (2,))
    file.create_virtual_dataset("entropy/far", layout)


def _plug_in(file: h5py.File) -> None:
    made = h5p.create(h5p.DATASET_CREATE)
    made.set_chunk((2,))
    made.set_filter(32_001, h5py.h5z.FLAG_OPTIONAL)
    h5d.create(file["entropy"].id, b"packed", h5t.NATIVE_DOUBLE, h5s.create_simple((2,)), made)


def _bomb(file: h5py.File) -> None:
    """Megabytes where eight bytes are said to be: HDF5 unpacked a gigabyte of 1.3 MB."""
    made = file.create_dataset("entropy/bomb", (1,), "f8", chunks=(1,), compression="gzip")
    made.id.write_direct_chunk((0,), zlib.compress(bytes(1 << 24), 1))


def _circle(file: h5py.File) -> None:
    file["entropy/again"] = file["/"]


def _shared_texts(file: h5py.File) -> None:
    """A file of a megabyte that takes gigabytes: its texts all lie in one place."""
    texts = file.create_dataset("entropy/texts", (30_000,), h5py.string_dtype())
    texts[0] = "x" * 1_000_000
    file.flush()
    with open(file.filename, "r+b", buffering=0) as raw:
        raw.seek(texts.id.get_offset())
        first = raw.read(16)
        raw.write(first * 29_999)


HOSTILE = {
    "external storage": (_external, "lie in another file"),
    "virtual dataset": (_virtual, "lie in another file"),
    "filter of a plug-in": (_plug_in, "cut into pieces or packed"),
    "bomb": (_bomb, "cut into pieces or packed"),
    "circle": (_circle, "in the file more than once"),
    "hard link": (
        lambda file: file.__setitem__("surface/twice", file["entropy/entropy"]),
        "in the file more than once",
    ),
    "soft link": (
        lambda file: file.__setitem__("entropy/soft", h5py.SoftLink("/surface")),
        "is a link to elsewhere",
    ),
    "external link": (
        lambda file: file.__setitem__("far", h5py.ExternalLink("../outside/a.nc", "/")),
        "is a link to elsewhere",
    ),
    "endless zeros": (
        lambda file: file.create_dataset("entropy/long", (1 << 40,), "f8", chunks=(1 << 20,)),
        "cut into pieces or packed",
    ),
    "nothing stored": (
        lambda file: file.create_dataset("entropy/long", (1 << 40,), "f8"),
        "is larger than a file of",
    ),
    "texts in one place": (_shared_texts, "is larger than a file of"),
    "groups without end": (
        lambda file: [file.create_group(f"entropy/{number}") for number in range(2_001)],
        "more than 2,000 groups",
    ),
    "records": (
        lambda file: file.create_dataset("entropy/record", data=np.zeros(2, "i4,f8")),
        "holds neither numbers nor texts",
    ),
    "texts without end": (
        lambda file: file.attrs.__setitem__("title", ["x"] * 1000),
        "attribute that is not of results",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_only_what_is_written_here_is_read_of_results(run, kind, monkeypatch):
    change, says = HOSTILE[kind]
    monkeypatch.chdir(run)  # names in HDF5 are looked for there
    with pytest.raises(RunFolderError, match=says):
        open_run(resealed(run, change))


@pytest.mark.parametrize(("number", "length"), [(0, 0), (0, 15), (1, 2**64 - 16), (1, 1 << 20)])
def test_a_text_that_does_not_end_is_refused_before_it_is_read(run, number, length, monkeypatch):
    """HDF5 went round for ever: an empty piece of what is free leads to itself."""
    content = (run / "atlas.nc").read_bytes()
    monkeypatch.setattr(results_check, "PIECE", content.index(HEAP) + 3)  # a sign across two
    head = content.index(HEAP) + 16  # of the first text
    harmed = bytes([number, 0]) + content[head + 2 : head + 8] + length.to_bytes(8, "little")
    file = io.BytesIO(content[:head] + harmed + content[head + 16 :])
    with h5py.File(file, "r") as opened, pytest.raises(ValueError, match="does not end"):
        check_objects(opened, file)


@pytest.mark.parametrize(("name", "value"), [("layers", 99), ("heads", "many"), ("documents", -1)])
def test_results_that_do_not_fit_what_they_say_are_refused(run, name, value):
    resealed(run, lambda file: file.attrs.__setitem__(name, value))
    with pytest.raises(RunFolderError, match=rf"damaged \(.*{name} "):
        open_run(run)


@pytest.mark.parametrize(
    "counts",
    [{"unknown": 1, "content": 0}, {"readings": {"x": []}}, {"readings": {"x": {"tokens": 1e999}}}],
)
def test_a_summary_of_counts_that_are_none_is_refused_in_words(run, counts):
    """It ended in a TypeError, an OverflowError or a division by zero in a notebook."""
    folder = RunFolder(run)
    manifest = folder.manifest()
    folder.write_manifest({**manifest, "counts": manifest["counts"] | counts})
    with pytest.raises(RunFolderError, match="not such as headscope writes"):
        open_run(run)._repr_html_()


@pytest.mark.parametrize("name", ["model", "tokens"])
def test_results_that_do_not_say_of_what_they_are_have_a_name(run, name):
    """A notebook showed a KeyError."""
    opened = open_run(resealed(run, lambda file: file.attrs.__delitem__(name)))
    assert repr(opened).startswith("<headscope.Run ")


def test_results_alone_are_told_so_by_all_who_read_them(run):
    (run / "manifest.json").unlink()
    for words in (["head", str(run), "L1H1"], ["head", str(run), "L1H1", "--json"]):
        done = CliRunner().invoke(group, words, standalone_mode=False)
        assert done.exception is None
        assert "nothing says what these results were computed from" in done.stderr


def _view(tiny, run):
    hs.view(tiny, "the cat", atlas=run)


def _probe(tiny, run):
    trees = [treebank(run.parent / f"{seed}.conllu", 9, seed=seed) for seed in (0, 1)]
    hs.probe(tiny, train=trees[0], test=trees[1], atlas=run)


@pytest.mark.parametrize("ask", [_view, _probe])
def test_labels_that_results_cannot_give_are_told_to_be_their_fault(run, tiny, ask):
    """Both commands ended in an internal error."""
    resealed(run, lambda file: file.__delitem__("surface/attention"))
    with pytest.raises(RunFolderError, match=r"cannot be shown \(.*not such as headscope writes"):
        ask(tiny, run)


# --- the folder -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sealed", [True, False])
def test_overwriting_deletes_nothing_through_a_link(run, outside, sealed):
    """It deleted a file outside the run: the list that named it is no secret."""
    shutil.rmtree(run / "shards")
    for name in ("tables", "shards", "mine"):
        (run / name).symlink_to(outside)
    (run / "figures").mkdir()
    (run / "figures/deep").symlink_to(outside)
    names = [f"{place}/a.csv" for place in ("tables", "mine", "figures/deep", "../outside")]
    lines = "".join(f"{'0' * 64}  {name}\n" for name in names).encode()
    seal = b"# sha256 " + hashlib.sha256(lines).hexdigest().encode() + b"\n"
    (run / ".written").write_bytes(seal + lines if sealed else "\n".join(names).encode())
    folder = RunFolder(run)
    with pytest.raises(RunFolderError, match=r"shards is a link; nothing outside"):
        folder.prepare(overwrite=True)
    (run / "shards").unlink()
    folder.prepare(overwrite=True)
    assert not (run / "manifest.json").exists()


def test_nothing_is_read_listed_or_written_through_a_link(run, outside):
    folder = RunFolder(run)
    (run / "tables").symlink_to(outside)
    with folder.listing(), pytest.raises(RunFolderError, match="nothing outside a run folder"):
        write_whole(run / "tables/a.csv", b"x")
    for name in ("atlas.nc", "manifest.json"):
        kept = run / f"{name}.kept"
        (run / name).rename(kept)
        (run / name).symlink_to(kept)
        with pytest.raises(RunFolderError, match="is a link, or lies behind one"):
            open_run(run)
        (run / name).unlink()
        os.mkfifo(run / name)
        with pytest.raises(RunFolderError, match="is no plain file"):
            open_run(run)
        (run / name).unlink()
        kept.rename(run / name)


def test_records_behind_a_link_are_neither_read_nor_deleted(run, outside):
    """`status` wrote a file of its own there, and read what it found."""
    for name in ("a.json", "a.lease", ".probe"):
        (outside / name).write_text("{}")
    before = outside.stat().st_mtime_ns
    (run / "processes").symlink_to(outside)
    assert run_status(run).processes == []
    drop_all(run)
    assert outside.stat().st_mtime_ns == before
    (run / "processes").unlink()
    (run / "processes").mkdir()
    (run / "processes/a.json").symlink_to(outside / "a.json")
    os.mkfifo(run / "processes/b.json")
    assert records(run) == {}
    for name in ("a.json", "a.lease", ".probe"):
        (outside / name).unlink()


def test_shards_behind_a_link_are_neither_read_nor_deleted(run, outside):
    folder = RunFolder(run)
    shutil.rmtree(run / "shards")
    (run / "shards").symlink_to(outside.parent / "shards")
    (outside.parent / "shards").mkdir()
    (outside.parent / "shards/00000").symlink_to(outside)
    assert folder.finished_spans() == set()
    folder.drop_shards()
    folder.clear_drafts()


@pytest.mark.parametrize(
    "content",
    [b"", b"no zlib", pack({"a#shape": np.array([-1, 3]), "a": np.zeros(1)}), pack({})[:-3]],
    ids=["empty", "other", "lacks its parts", "cut"],
)
def test_a_shard_of_a_fitting_digest_that_cannot_be_read_is_computed_again(tmp_path, content):
    """263 of 300 ended in an internal error."""
    folder = RunFolder(tmp_path / "run")
    folder.owner = "mine"
    sealed = b"mine\n" + content
    name = f"00000-{hashlib.sha256(sealed).hexdigest()[:32]}.shard"
    write_whole(tmp_path / "run/shards/00000" / name, sealed)
    assert folder.finished_shards() == {0}
    with pytest.raises(HeadscopeError, match=r"is damaged; run the command again"):
        folder.shard(0)
    assert folder.finished_shards() == set()


def test_a_shard_that_unpacks_without_end_is_refused(tmp_path):
    folder = RunFolder(tmp_path / "run")
    parts = {"a#places": np.array([0]), "a#counts": np.array([1])}
    folder.put_shard(0, parts | {"a#shape": np.array([1 << 20, 1 << 20])})
    with pytest.raises(HeadscopeError, match=r"is damaged"):
        folder.shard(0)


def test_a_small_shard_of_endless_zeros_is_refused_before_it_fills_memory(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    folder.put_shard(0, {"a": np.zeros(50_000)})
    assert folder.shard(0)["a"].size == 50_000
    monkeypatch.setattr(shard_files, "_LARGEST", 100_000)
    with pytest.raises(HeadscopeError, match=r"is damaged"):
        folder.shard(0)


def test_results_are_read_from_what_was_hashed(run):
    content = io.BytesIO((run / "atlas.nc").read_bytes())
    assert tree_of_netcdf(content).identical(open_run(run).tree)
