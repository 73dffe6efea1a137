"""Is every wrong input of a user refused in words, and none an internal failure?

Each of these was one. Found by hand or by `python -m trials fuzz`, which looks for the next.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import shutil

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet
from trials.fuzz import SECONDS, Input, kept, one_input, outcome, refused_unharmed, seconds
from trials.outcomes import SHARE
from trials.targets import READERS, SAMPLES, _make_models, samples

import headscope
from headscope.cli.main import group
from headscope.core.whole_file import write_whole
from headscope.errors import (
    LONGEST,
    CorpusError,
    HeadscopeError,
    InputError,
    ModelError,
    RunFolderError,
)
from headscope.experiments.comparison.similarity import read_training
from headscope.experiments.map_classifier.annotation_session import Session
from headscope.experiments.probes.word_vectors import read_vectors
from headscope.model.checkpoint import quietly
from headscope.run.manifest import training_history
from headscope.run.settings import Settings
from headscope.run.store import RunFolder, open_run
from headscope.tasks.task_data import read_task

DEEP = "[" * 100_000
GZIP = gzip.compress(b"the 1 2\n" * 2000, mtime=0)


# --- data -------------------------------------------------------------------------------------


def table(columns):
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


LATIN = table({"text": pa.array([b"caf\xe9"]).cast("string", safe=False), "label": [1]})


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("dev.tsv", b"\n\n\n", "no line with content"),
        ("dev.tsv", b"\t\n\t\n", "two columns named ''"),
        ("dev.jsonl", f'{{"text": {DEEP}'.encode(), "no JSON"),
        ("dev.jsonl", f'{{"text": "a", "label": 1}}\n{DEEP}'.encode(), "line 2: no JSON"),
        ("dev.parquet", LATIN, "cannot be read as parquet: 'utf-8' codec can't decode byte"),
    ],
)
def test_a_table_that_cannot_be_read(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=says):
        read_task("own", tmp_path / name)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (GZIP[:20] + bytes(40) + GZIP[60:], "cannot read word vectors from .*: Error -3"),
        (b"\n\nthe 1\n", "found b''; wanted a word and its numbers"),
        (b"the\ncat\n", "found b'the'; wanted a word and its numbers"),
    ],
)
def test_vectors_that_are_damaged_or_of_no_width(tmp_path, content, says):
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_vectors(tmp_path / "v", ["the", "cat"])


def a_session(folder, **changes):
    (files,) = SAMPLES["session"]().values()
    folder.mkdir()
    for name, content in (files | changes).items():
        (folder / name).write_bytes(content)
    return folder


def test_a_session_with_a_damaged_archive(tmp_path):
    content = SAMPLES["session"]()["session"]["maps.npz"]
    at = content.index(b"weights.npy") + 60
    damaged = content[:at] + bytes(20) + content[at + 20 :]
    with pytest.raises(InputError, match=r"maps.npz or provenance.csv cannot be read"):
        Session(a_session(tmp_path / "s", **{"maps.npz": damaged}))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("model,", "modell,", "cannot be read \\('model'\\)"),
        (",0 2,1", ",0 9,1", "below its size"),
        (",0 2,1", ",x,1", "below its size"),
    ],
)
def test_provenance_without_a_column_or_with_a_place_that_is_none(tmp_path, old, new, says):
    rows = SAMPLES["session"]()["session"]["provenance.csv"].decode().replace(old, new)
    with pytest.raises(InputError, match=says):
        Session(a_session(tmp_path / "s", **{"provenance.csv": rows.encode()}))


def test_a_record_of_training_nested_without_end(tmp_path):
    (tmp_path / "finetuned.json").write_text(DEEP, "utf-8")
    assert training_history(str(tmp_path)) is None
    with pytest.raises(ModelError, match="no record of a training"):
        read_training(tmp_path, layers=2)


# --- run folders ----------------------------------------------------------------------------------


@pytest.fixture
def run(short, tmp_path):
    shutil.copytree(short.path, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    "changes",
    [
        {"model": []},
        {"counts": 7},
        {"counts": {"skipped": "x"}},
        {"spec": None},
        {"model": {"layers": "2"}},
        {"fingerprint": 3},
        {"shards": "4"},
    ],
)
def test_a_manifest_with_a_part_of_another_kind(run, changes):
    folder = RunFolder(run)
    folder.write_manifest({**folder.manifest(), **changes})
    with pytest.raises(RunFolderError, match=f"is no manifest .*its {next(iter(changes))}|its "):
        open_run(run)


def test_what_hdf5_says_of_damage(run):
    """The hash is made to fit, as in a folder from a stranger."""
    content = bytearray((run / "atlas.nc").read_bytes())
    content[2000:2400] = b"\xff" * 400
    folder = RunFolder(run)
    manifest = folder.manifest()
    folder.write_manifest({**manifest, "results_sha256": folder.put_results(bytes(content))})
    with pytest.raises(RunFolderError, match=r"atlas.nc is damaged \("):
        open_run(run)


# --- models -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work") / "models"
    with quietly():
        _make_models(folder)
    return folder


def changed(models, tmp_path, file, change):
    folder = tmp_path / "model"
    shutil.copytree(models / "bert", folder)
    content = json.loads((folder / file).read_text("utf-8"))
    change(content)
    (folder / file).write_text(json.dumps(content), "utf-8")
    return str(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hidden_act": ["gelu"]}, "'hidden_act': TypeError: .* expected str"),  # StrictDataclass
        ({"hidden_size": 0}, "cannot load"),  # ZeroDivisionError
        ({"num_hidden_layers": 2**31}, "says 2147483648 layers, and its weights are"),  # for ever
    ],
)
def test_a_configuration_that_is_none(models, tmp_path, change, says):
    place = changed(models, tmp_path, "config.json", lambda config: config.update(change))
    with pytest.raises(ModelError, match=says):
        headscope.load(place)


def without_unknown(tokenizer):
    """tokenizers then complains of every word that it does not know."""
    del tokenizer["model"]["vocab"]["[UNK]"]
    tokenizer["added_tokens"] = []
    tokenizer["model"]["unk_token"] = "[NONE]"


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("tokenizer.json", lambda t: t["post_processor"].update(single=5), "PostProcessorWrapper"),
        ("tokenizer.json", without_unknown, "WordPiece error: Missing .* token"),
        ("tokenizer_config.json", lambda t: t.update(model_max_length="x"), "not supported betw"),
    ],
)
def test_a_tokenizer_that_cannot_be_used(models, tmp_path, file, change, says):
    with pytest.raises(ModelError, match=says):
        headscope.load(changed(models, tmp_path, file, change))


# --- requests, and the disk ---------------------------------------------------------------------


def test_numbers_beyond_what_can_be_kept_are_refused():
    atlas = ["atlas", "demo", "--demo", "-o", "x"]
    for option in ("--seed", "--limit", "--max-length", "--shard-tokens"):
        done = CliRunner().invoke(group, [*atlas, option, str(10**23)])
        assert isinstance(done.exception, InputError), option
        assert f"{option} is 1000" in str(done.exception)
    for seed in (10**23, 10**4000, 2**63):
        with pytest.raises(InputError, match=r"wanted a whole number below 2\*\*63"):
            Settings(seed=seed)
    assert Settings(seed=2**63 - 1).seed == 2**63 - 1


@pytest.mark.parametrize("many", [{"threads": 100_000}, {"workers": 100_000}, {"threads": 0}])
def test_threads_that_no_machine_has_are_refused(many):
    with pytest.raises(InputError, match=r"at most 1024|at least 1"):
        headscope.Execution(**many)


def test_a_page_in_the_place_of_a_folder(tmp_path):
    with pytest.raises(HeadscopeError, match="Is a directory; choose another place") as caught:
        write_whole(tmp_path, b"x")
    assert caught.value.exit_code == 2
    assert [*tmp_path.parent.glob(".part-*")] == []


@pytest.mark.parametrize("at", ["mkdir", "open", "close", "fsync", "replace"])
def test_a_disk_that_is_full_at_any_operation(tmp_path, monkeypatch, at):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, at, full)
        with pytest.raises(HeadscopeError, match=r"no space left to write .*page.html") as caught:
            write_whole(tmp_path / "new" / "page.html", b"x")
    assert caught.value.exit_code == 1
    assert not (tmp_path / "new" / "page.html").exists()


def test_a_message_is_short_whatever_it_quotes():
    message = str(CorpusError("found " + "x" * 100_000 + "; wanted less: cut it"))
    assert len(message) <= LONGEST
    assert message.startswith("found xx")
    assert message.endswith("; wanted less: cut it")
    assert str(CorpusError("as it is")) == "as it is"
    done = CliRunner().invoke(group, ["atlas", "demo", "-o", "x", "--seed", "9" * 5000])
    assert done.exit_code == 2


# --- the trial, in short -------------------------------------------------------------------------

INPUTS = {"run": 6, "model": 60}  # of readers 30 each


@pytest.fixture(scope="module")
def work(models, short):
    if not (models.parent / "run").exists():
        shutil.copytree(short.path, models.parent / "run")
    return models.parent


@pytest.mark.parametrize("target", READERS)
def test_damaged_files_are_read_or_refused(work, tmp_path, target):
    kinds = samples(target, work)
    assert not refused_unharmed(target, work)
    inputs, hits = INPUTS.get(target, 30), 0
    for number in range(inputs):
        given = one_input(target, kinds, number, seed=17)
        hits += given.hits
        found = outcome(given, tmp_path / "input")
        assert found[0] in ("read", "refused"), (number, given.file, found)
    assert hits >= SHARE * inputs


def test_what_was_found_before_stays_mended(work, tmp_path):
    for given in kept(work):
        assert outcome(given, tmp_path / "input")[0] in ("read", "refused"), given.file


def test_results_found_elsewhere_are_read_here_as_if_the_run_were_theirs(work, tmp_path):
    """They fit no run of this machine, and were refused for that before anything read them."""
    of_a_run = [given for given in kept(work) if (given.target, given.file) == ("run", "atlas.nc")]
    one = of_a_run[-1]
    with pytest.raises(RunFolderError, match="a text at byte 4464 does not end"):
        open_run(one.write(tmp_path / "input"))


def test_what_is_large_may_take_longer():
    """A text of 300 kB that took two seconds on a busy machine counted as a hang."""
    small, large = (Input("text", "a", "b", b"x" * size, {"b": b""}) for size in (1000, 300_000))
    assert seconds(small) == pytest.approx(SECONDS, rel=0.1)
    assert 3 * SECONDS < seconds(large) < 10 * SECONDS
