"""Is a file whole or not there, written by one at a time, read by those whom the umask allows?"""

import errno
import fcntl
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from commands import environment
from headscope.core import whole_file
from headscope.core.whole_file import held, noting_written, put_folder, write_whole
from headscope.errors import HeadscopeError, RunFolderError, UnwrittenError

MARKS = ("mark",)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_umask_says_who_may_read(tmp_path, umask, mode):
    def write(folder):
        (folder / "weights").touch(0o600)  # as safetensors makes its files

    before = os.umask(umask)
    try:
        file = write_whole(tmp_path / "deep/file", b"x")
        put_folder(tmp_path / "folder", write, marks=MARKS)
    finally:
        os.umask(before)
    for path in (file, tmp_path / "folder/weights"):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_what_fails_leaves_the_old_file_and_no_draft(tmp_path):
    file = write_whole(tmp_path / "file", b"old")

    def fail(draft):
        Path(draft).write_bytes(b"half")
        raise OSError

    with noting_written(tmp_path) as noted, pytest.raises(UnwrittenError, match="cannot write"):
        write_whole(file, fail)
    assert os.listdir(tmp_path) == ["file"]
    assert file.read_bytes() == b"old"
    assert not noted


def test_the_rename_is_synced_with_the_folder_it_is_in(tmp_path, monkeypatch):
    """Without it a power loss could undo what was seen to be there."""
    did, sync, replace = [], os.fsync, os.replace

    def fsync(handle):
        did.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def rename(*paths):
        did.append("rename")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    write_whole(tmp_path / "file", b"x")
    assert did == ["file", "rename", "folder"]
    did.clear()
    put_folder(tmp_path / "ckpt", lambda folder: (folder / "a").write_bytes(b"x"), marks=MARKS)
    assert did == ["file", "rename", "folder"]


def test_an_old_folder_goes_once_the_new_ones_name_is_safe(tmp_path, monkeypatch):
    """The power may fail in between."""
    did, sync, remove = [], os.fsync, shutil.rmtree

    def fsync(handle):
        did.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def rmtree(path, **more):
        did.extend(["removed"] if Path(path).exists() else [])
        remove(path, **more)

    def write(folder):
        (folder / "mark").write_bytes(b"x")

    put_folder(tmp_path / "ckpt", write, marks=MARKS)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(shutil, "rmtree", rmtree)
    put_folder(tmp_path / "ckpt", write, marks=MARKS)
    assert did == ["file", "folder", "removed"]


# --- a disk that is full ----------------------------------------------------------------------

# One after the other, each operation by which a file or a folder is written.
OPERATIONS = ("os.open", "os.fsync", "os.replace", "pathlib.Path.mkdir", "pathlib.Path.write_bytes")


def refusing(monkeypatch, operation, times=1):
    """The system has no space for this operation, so many times."""
    owner, _, name = operation.rpartition(".")
    owner = {"os": os, "pathlib.Path": Path}[owner]
    known, calls = getattr(owner, name), []

    def refuse(*given, **options):
        calls.append(given)
        if len(calls) <= times:
            raise OSError(errno.ENOSPC, "No space left on device")
        return known(*given, **options)

    monkeypatch.setattr(owner, name, refuse)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_full_disk_is_our_error_and_leaves_no_draft(operation, tmp_path, monkeypatch):
    file = write_whole(tmp_path / "file", b"old")
    refusing(monkeypatch, operation)
    with pytest.raises(UnwrittenError, match=r"no space left to write .*file") as told:
        write_whole(file, b"new")
    assert told.value.exit_code == 1
    assert os.listdir(tmp_path) == ["file"]
    assert file.read_bytes() == b"old"


@pytest.mark.parametrize("operation", [*OPERATIONS[1:], "pathlib.Path.chmod"])
def test_a_full_disk_leaves_no_draft_of_a_folder(operation, tmp_path, monkeypatch):
    """A rename that failed once left the draft beside the checkpoint."""
    folder = tmp_path / "ckpt"
    put_folder(folder, lambda draft: (draft / "mark").write_bytes(b"old"), marks=MARKS)
    refusing(monkeypatch, operation)
    with pytest.raises(HeadscopeError, match=r"cannot write .*ckpt: No space left"):
        put_folder(folder, lambda draft: (draft / "mark").write_bytes(b"new"), marks=MARKS)
    assert os.listdir(tmp_path) == ["ckpt"]
    assert (folder / "mark").read_bytes() == b"old"


def test_a_file_of_a_folder_that_has_no_room_is_told_by_the_folder(tmp_path, monkeypatch):
    """The path of a draft that is gone says nothing to a user."""
    refusing(monkeypatch, "os.fsync")
    with pytest.raises(HeadscopeError, match=r"cannot write .*ckpt: No space left") as told:
        put_folder(
            tmp_path / "ckpt", lambda draft: write_whole(draft / "figure", b"x"), marks=MARKS
        )
    assert ".part" not in str(told.value)


def test_the_old_folder_comes_back_where_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    folder, rename = tmp_path / "ckpt", os.replace
    put_folder(folder, lambda draft: (draft / "mark").write_bytes(b"old"), marks=MARKS)

    def refuse(old, new):
        if Path(old).name.endswith(".part"):
            raise OSError(errno.EIO, "Input/output error")
        rename(old, new)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(HeadscopeError, match="Input/output error"):
        put_folder(folder, lambda draft: (draft / "mark").write_bytes(b"new"), marks=MARKS)
    assert os.listdir(tmp_path) == ["ckpt"]
    assert (folder / "mark").read_bytes() == b"old"


def test_a_folder_that_somebody_else_filled_meanwhile_is_left_alone(tmp_path):
    """A run that began while a checkpoint was trained was once deleted with its folder."""
    folder = tmp_path / "ckpt"

    def write(draft):
        (draft / "mark").write_bytes(b"ours")
        write_whole(folder / "manifest.json", b"a run")

    with pytest.raises(RunFolderError, match="is not empty and has no mark; it is not replaced"):
        put_folder(folder, write, marks=MARKS)
    assert os.listdir(tmp_path) == ["ckpt"]
    assert os.listdir(folder) == ["manifest.json"]


# --- one at a time ----------------------------------------------------------------------------

SINCE = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00"
HOLDER = (
    "import sys\nfrom pathlib import Path\nfrom headscope.core.whole_file import held\n"
    "with held(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
)


def test_a_second_process_is_told_who_holds_a_place_and_a_killed_one_lets_go(tmp_path):
    place = tmp_path / "run"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunFolderError) as told, held(place):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    first, second = str(told.value).splitlines()
    by = re.escape(f"(process {holder.pid} on {platform.node()}, ") + SINCE
    assert re.fullmatch(rf"another headscope {by}\) is writing to {place}", first)
    assert second == "wait until it has finished, or choose another folder with -o"
    assert os.listdir(tmp_path) == [".run.lock"]  # what it left
    with held(place):
        assert f"(process {os.getpid()} " in (tmp_path / ".run.lock").read_text()
    assert os.listdir(tmp_path) == []


def test_a_place_is_one_by_whatever_name(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "also").symlink_to("run")
    monkeypatch.chdir(tmp_path / "run")
    for name in ("", "../run", "../also", tmp_path / "run", tmp_path / "other/../run"):
        with held(Path()), pytest.raises(RunFolderError, match="is writing to"), held(Path(name)):
            pass
    with held(Path()), held(Path("../another")):
        pass


def test_a_place_in_a_folder_that_cannot_be_written_is_held_within(tmp_path, monkeypatch):
    """As where a disk is mounted there."""
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with held(place):
        assert os.listdir(place) == [".lock"]
        with pytest.raises(RunFolderError, match="is writing to"), held(place):
            pass
    assert os.listdir(place) == []


def test_who_opened_the_lock_just_before_it_was_removed_does_not_hold_it(tmp_path, monkeypatch):
    """Between opening and locking, the first ends and removes it, and a third begins."""
    lock, opened, real = tmp_path / ".run.lock", [], fcntl.flock

    def late(handle, how):
        opened.append(handle)
        if len(opened) == 1:
            lock.unlink()
            lock.touch()
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with held(tmp_path / "run"):
        assert len(opened) == 2
        assert os.path.samestat(os.fstat(opened[1]), lock.stat())


def test_a_lock_that_leads_elsewhere_is_not_followed(tmp_path):
    (tmp_path / "letter").write_text("dear")
    (tmp_path / ".run.lock").symlink_to("letter")
    with pytest.raises(UnwrittenError, match=r"cannot write .*run"), held(tmp_path / "run"):
        pass
    assert (tmp_path / "letter").read_text() == "dear"


@pytest.mark.parametrize("operation", ["write", "truncate"])
def test_a_full_disk_does_not_keep_anybody_from_holding_a_place(operation, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(whole_file.os, operation, full)
    refused = pytest.raises(RunFolderError, match="another headscope is writing")
    with held(tmp_path / "run"), refused, held(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path) == []


def test_without_locks_in_a_file_system_nothing_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with held(tmp_path / "run"), held(tmp_path / "run"):
        pass


def test_what_fails_lets_go_of_its_place(tmp_path):
    with suppress(ZeroDivisionError), held(tmp_path / "run"):
        raise ZeroDivisionError
    with held(tmp_path / "run"):
        pass


# --- a server does it, and its answer is lost -------------------------------------------------


def asked_twice(monkeypatch, operation):
    """What is done is asked for again, as a client of NFS does that got no answer."""
    real = getattr(os, operation)

    def again(*names):
        real(*names)
        real(*names)

    monkeypatch.setattr(os, operation, again)


@pytest.mark.parametrize(("operation", "anew"), [("replace", False), ("link", True)])
def test_a_file_that_got_its_name_is_written_though_the_answer_was_lost(
    operation, anew, tmp_path, monkeypatch
):
    asked_twice(monkeypatch, operation)
    assert write_whole(tmp_path / "file", b"new", anew=anew).read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_got_its_name_is_written_though_the_answer_was_lost(tmp_path, monkeypatch):
    asked_twice(monkeypatch, "replace")
    for content in (b"old", b"new"):
        put_folder(
            tmp_path / "made", lambda to, c=content: (to / "mark").write_bytes(c), marks=("mark",)
        )
    assert (tmp_path / "made/mark").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["made"]


def test_a_name_that_another_file_has_is_no_lost_answer(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", b"new", anew=True)
    (tmp_path / "file").unlink()
    with pytest.raises(UnwrittenError):
        write_whole(tmp_path / "file", os.unlink)
    assert os.listdir(tmp_path) == []
