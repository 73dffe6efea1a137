"""Does nothing in a stranger's folder lead out of it?"""

import os

import pytest

from headscope.core.inside import (
    digest_inside,
    drop_inside,
    is_inside,
    names_inside,
    opened_inside,
    read_inside,
)
from headscope.errors import RunFolderError


@pytest.fixture
def folder(tmp_path):
    """A folder with a file of its own, and every way out of it to a secret."""
    outside, folder = tmp_path / "outside", tmp_path / "run"
    for place in (outside, folder / "tables"):
        place.mkdir(parents=True)
        (place / "a.csv").write_text(place.name)
    (folder / "out").symlink_to(outside)
    (folder / "far").symlink_to("out")
    (folder / "one.csv").symlink_to(outside / "a.csv")
    (folder / "own.csv").symlink_to("tables/a.csv")
    os.mkfifo(folder / "pipe")
    return folder


WAYS = (
    "out/a.csv",
    "far/a.csv",
    "one.csv",
    "own.csv",
    "../outside/a.csv",
    "tables/../../outside/a.csv",
)


@pytest.mark.parametrize("name", [*WAYS, "/etc/passwd", "", "a\0b", "tables", "pipe"])
def test_what_is_no_plain_file_of_the_folder_is_not_read(folder, name):
    with pytest.raises(RunFolderError):
        opened_inside(folder, name)
    assert not is_inside(folder, name)
    assert digest_inside(folder, name) == ""


@pytest.mark.parametrize("name", WAYS)
def test_nothing_is_deleted_but_what_lies_in_the_folder(folder, name):
    drop_inside(folder, name)
    assert (folder.parent / "outside/a.csv").read_text() == "outside"
    assert (folder / "tables/a.csv").read_text() == "tables"


def test_its_own_files_are_read_listed_and_deleted(folder):
    named = folder.parent / "named"
    named.symlink_to(folder)  # by its user
    assert read_inside(named, "tables/a.csv") == b"tables"
    assert names_inside(folder, "tables") == ["tables/a.csv"]
    assert names_inside(folder, "out") == []
    drop_inside(named, "tables/a.csv")
    drop_inside(named, "tables")
    drop_inside(named, "tables/gone")
    drop_inside(named, "one.csv")
    assert sorted(os.listdir(folder)) == ["far", "out", "own.csv", "pipe"]
    with pytest.raises(FileNotFoundError):
        read_inside(folder, "none")
