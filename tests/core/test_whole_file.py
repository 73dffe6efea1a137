"""Is a file there whole or not at all, readable by those whom the umask allows?"""

import os
import stat
from pathlib import Path

import pytest

from headscope.core.whole_file import noting_written, put_folder, write_whole


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_umask_says_who_may_read(tmp_path, umask, mode):
    def write(folder):
        (folder / "weights").touch(0o600)  # as safetensors makes its files

    before = os.umask(umask)
    try:
        file = write_whole(tmp_path / "deep/file", b"x")
        put_folder(tmp_path / "folder", write)
    finally:
        os.umask(before)
    for path in (file, tmp_path / "folder/weights"):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_what_fails_leaves_the_old_file_and_no_draft(tmp_path):
    file = write_whole(tmp_path / "file", b"old")

    def fail(draft):
        Path(draft).write_bytes(b"half")
        raise OSError

    with noting_written() as noted, pytest.raises(OSError):  # noqa: PT011
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
    put_folder(tmp_path / "ckpt", lambda folder: (folder / "a").write_bytes(b"x"))
    assert did == ["file", "rename", "folder"]
