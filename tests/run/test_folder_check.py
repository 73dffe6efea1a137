"""Does `headscope doctor RUN` tell what of a run folder can be trusted, and what cannot?"""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from click.testing import CliRunner

from headscope.cli.main import group
from headscope.core.whole_file import write_whole
from headscope.run.folder_check import check_folder
from headscope.run.manifest_file import CHECKSUM
from headscope.run.store import RunFolder


@pytest.fixture
def run(short, tmp_path):
    """A copy of a finished run."""
    shutil.copytree(short.path, tmp_path / "run")
    return tmp_path / "run"


def checked(folder, *more):
    return CliRunner().invoke(group, ["doctor", str(folder), *more])


def bad(folder):
    """What cannot be trusted, and the exit code that goes with it."""
    done = checked(folder, "--json")
    found = [line["check"] for line in json.loads(done.stdout) if line["verdict"] == "BAD"]
    assert done.exit_code == (1 if found else 0), done.output
    return found


def test_a_run_as_it_was_written_is_trusted_line_by_line(run):
    done = checked(run)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 6 + ["note"]
    assert "5 of 5 there, each of this run and whole" in done.stdout
    assert "there is none: headscope report" in lines[-1]


def test_a_run_that_keeps_no_shards_is_trusted_too(run):
    shutil.rmtree(run / "shards")
    assert bad(run) == []
    assert "none is kept: the run is finished" in checked(run).stdout


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("manifest.json", "manifest"), ("atlas.nc", "results"), ("shards/*/00003-*", "shards")],
)
def test_one_flipped_bit_is_named_and_nothing_is_touched(run, pattern, says):
    (file,) = run.glob(pattern)
    flip(file)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert bad(run) == [says]
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


@pytest.fixture
def drawn(run):
    """A run with files of every kind, as a report writes them."""
    kinds = ("tables/a.csv", "tables/a.parquet", "figures/a.svg", "figures/deep/a.png")
    with RunFolder(run).listing():
        for name in (*kinds, "report.html", "more.html"):
            write_whole(run / name, name.encode() * 40)
    return run


KINDS = {
    "tables/a.csv": "tables",
    "tables/a.parquet": "tables",
    "figures/a.svg": "figures",
    "figures/deep/a.png": "figures",
    "report.html": "report",
    "more.html": "report",
    ".written": "list",
    "atlas.nc": "results",
    "manifest.json": "manifest",
}


def test_a_flipped_bit_is_named_in_every_kind_of_file(drawn):
    """Of 30 bits of each file but the last two none was: they had no digests."""
    assert bad(drawn) == []
    for name, kind in KINDS.items():
        content = (drawn / name).read_bytes()
        for at in range(5, 8 * len(content), 8 * len(content) // 3):
            flipped = bytearray(content)
            flipped[at // 8] ^= 1 << at % 8
            (drawn / name).write_bytes(flipped)
            wrong = [line for line in check_folder(drawn) if line[0] == "BAD"]
            assert [what for _, what, _ in wrong] == [kind], (name, at)
        (drawn / name).write_bytes(content)
    assert bad(drawn) == []


def test_what_a_report_writes_anew_is_as_it_says(drawn):
    (drawn / "tables/a.csv").write_bytes(b"other")
    assert "1 not as written (tables/a.csv)" in checked(drawn).stdout
    with RunFolder(drawn).listing():
        write_whole(drawn / "tables/a.csv", b"anew")
    assert bad(drawn) == []
    seal, *lines = (drawn / ".written").read_text().splitlines()
    assert len(lines) == 6
    assert seal.startswith("# sha256 ")
    assert f"{hashlib.sha256(b'anew').hexdigest()}  tables/a.csv" in lines


def test_what_was_removed_is_named(run):
    (run / "atlas.nc").unlink()
    assert bad(run) == ["results"]
    (run / "manifest.json").unlink()
    shutil.copytree(run, run.parent / "other")
    (run.parent / "other" / "atlas.nc").write_bytes(b"x")
    assert bad(run.parent / "other") == ["manifest", "results"]


def resealed(run, **changes):
    """A manifest that was changed and given a new checksum, as anybody can do."""
    folder = RunFolder(run)
    manifest = folder.manifest()
    folder.write_manifest({**manifest, **changes})
    assert json.loads((run / "manifest.json").read_text("utf-8"))[CHECKSUM]
    return manifest


def test_a_spec_that_is_not_the_one_that_was_named_is_bad(run):
    spec = resealed(run)["spec"]
    resealed(run, spec={**spec, "settings": {**spec["settings"], "seed": 7}})
    assert bad(run) == ["spec"]


def test_results_and_shards_of_another_run_are_bad(run):
    resealed(run, fingerprint="0" * 64)
    assert bad(run) == ["spec", "results", "shards"]


def test_an_analysis_that_the_results_lack_is_named(run):
    names = resealed(run)["analyses"]
    resealed(run, analyses=[*names, "flow"])
    assert bad(run) == ["results"]
    assert "lacks flow" in checked(run).stdout


def test_listed_files_that_are_gone_and_files_of_nobody_are_told(run):
    (run / ".written").write_text("tables/a.csv\ntables/b.csv\n", "utf-8")
    (run / "tables").mkdir()
    for name in ("a.csv", "mine.csv"):
        (run / "tables" / name).write_text("x", "utf-8")
    done = checked(run)
    assert done.exit_code == 0
    assert "1 of 2 listed files are there, not hashed, 1 that the run did not write" in done.stdout


def test_an_unfinished_run_is_no_damage(run):
    manifest = resealed(run)
    resealed(run, results_sha256="", command="headscope atlas x")
    (run / "atlas.nc").unlink()
    assert bad(run) == []
    assert "not finished; go on with it: headscope atlas x" in checked(run).stdout
    assert manifest["results_sha256"]
