"""Is no label lost, and is every map found again as it was drawn?"""

import csv
import resource
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from commands import environment
from experiments.map_classifier.made import make_drawn, make_map
from headscope.analyses.patterns import CLASSES
from headscope.analyses.patterns.classes import NAMES
from headscope.errors import InputError
from headscope.experiments.map_classifier.annotation_session import Session, shuffled

LABELLING = """
import sys
from headscope.experiments.map_classifier.annotation_session import Session
session = Session(sys.argv[1])
number = 0
while True:
    session.label("a", number % len(session), "block" if number % 2 else "vertical")
    print(number, flush=True)
    number += 1
"""


def write(session, text, name="a"):
    path = session.folder / f"labels-{name}.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- maps -------------------------------------------------------------------------------------


def test_maps_of_different_sizes_come_back_bit_by_bit(session):
    again = Session(session.folder)
    assert len(again) == 6
    for number, one in enumerate(make_drawn(6)):
        np.testing.assert_array_equal(again.map(number), make_map(number, 10 + number % 7))
        assert again.boundary(number) == one.boundary
        assert again.provenance[number]["layer"] == str(one.layer)


def test_names_of_any_characters_stand_in_the_provenance_as_they_are(tmp_path):
    names = ('a,"b"\nc', "=1+1", "..\\../x", "half \ud800 of a pair")
    session = Session.create(tmp_path / "s", make_drawn(2, names=names))
    assert [row["number"] for row in session.provenance] == ["0", "1"]
    row = session.provenance[1]
    assert (row["model"], row["text"], row["document"]) == names[:3]
    assert row["example"] == "half \\ud800 of a pair"


def test_a_session_is_not_written_over(session):
    before = (session.folder / "maps.npz").read_bytes()
    with pytest.raises(InputError, match="holds a session already"):
        Session.create(session.folder, make_drawn(2))
    assert (session.folder / "maps.npz").read_bytes() == before


def test_what_was_interrupted_while_it_was_made_is_no_session_and_is_made_anew(
    tmp_path, monkeypatch
):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez_compressed", stop)
        with pytest.raises(KeyboardInterrupt):
            Session.create(tmp_path / "s", make_drawn(2))
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == ["provenance.csv"]
    assert len(Session.create(tmp_path / "s", make_drawn(3))) == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("maps.npz", b"PK\x03\x04 and nothing else"),
        ("maps.npz", b""),
        ("provenance.csv", b"number\n0\n"),
        ("provenance.csv", b""),
        ("provenance.csv", b"\xff\xfe"),
    ],
)
def test_damaged_files_of_maps_are_an_error_that_names_the_session(session, name, content):
    (session.folder / name).write_bytes(content)
    with pytest.raises(InputError, match=str(session.folder)):
        Session(session.folder)


def test_a_pickle_is_not_opened(session):
    np.savez(
        session.folder / "maps.npz", sizes=np.array([1] * 6), weights=np.array([{}] * 6, object)
    )
    with pytest.raises(InputError, match="cannot be read"):
        Session(session.folder)


def test_shuffling_keeps_every_map_and_follows_the_seed():
    drawn = [replace(one, example=str(n)) for n, one in enumerate(make_drawn(40))]
    orders = [[one.example for one in shuffled(drawn, seed=seed)] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0], key=int) == [str(n) for n in range(40)] != orders[0]


# --- labels -----------------------------------------------------------------------------------


def test_nothing_that_was_answered_is_lost_when_the_process_is_killed(session):
    process = subprocess.Popen(
        [sys.executable, "-c", LABELLING, str(session.folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    killer = threading.Timer(60, process.kill)
    killer.start()
    answered = -1
    for line in process.stdout:
        answered = int(line)
        if answered >= 20:
            break
    process.send_signal(signal.SIGKILL)
    answered = max([answered, *map(int, process.stdout.read().split())])
    process.wait()
    killer.cancel()
    process.stdout.close()
    lines = (session.folder / "labels-a.csv").read_text().splitlines()
    expected = [f"{n % 6},{'block' if n % 2 else 'vertical'}" for n in range(len(lines))]
    assert lines == expected
    assert answered + 1 <= len(lines) <= answered + 2  # one may be kept and not answered yet
    again = Session(session.folder)
    again.label("a", 0, "diagonal")
    assert again.labels("a")[0] == "diagonal"


def test_the_last_word_on_a_map_counts(session):
    for label in ("block", "vertical", "diagonal"):
        session.label("a", 3, label)
    session.label("a", 1, "block")
    assert Session(session.folder).labels("a") == {3: "diagonal", 1: "block"}


def test_undo_takes_back_the_latest_that_stands_and_is_a_line_itself(session):
    for number, label in ((0, "block"), (4, "vertical"), (0, "diagonal")):
        session.label("a", number, label)
    assert session.undo("a") == 0
    assert session.labels("a") == {4: "vertical"}
    assert session.undo("a") == 4
    assert session.undo("a") is None
    assert session.labels("a") == {}
    lines = session.label_file("a").read_text().split()
    assert lines == ["0,block", "4,vertical", "0,diagonal", "0,undo", "4,undo"]


def test_annotators_do_not_see_each_others_labels(session):
    session.label("a", 0, "block")
    session.label("Bea.2", 0, "vertical")
    assert session.annotators() == ["Bea.2", "a"]
    assert session.labels("a") == {0: "block"}
    assert session.labels("Bea.2") == {0: "vertical"}
    assert session.labels("c") == {}


@pytest.mark.parametrize(
    "name",
    ["", "../a", "..\\a", "a/b", "/etc/passwd", "a\x00b", "a\nb", "a b", "a:b", "a" * 41, "a\n"],
)
def test_no_name_of_an_annotator_leaves_the_folder(session, name):
    before = sorted(session.folder.parent.rglob("*"))
    for work in (lambda: session.label(name, 0, "block"), lambda: session.labels(name)):
        with pytest.raises(InputError, match="wanted up to 40 letters"):
            work()
    assert sorted(session.folder.parent.rglob("*")) == before


@pytest.mark.parametrize("name", ["..", ".", "a..b", "-a", "été", "中"])
def test_unusual_names_stay_in_the_folder(session, name):
    session.label(name, 0, "block")
    assert session.label_file(name).resolve().parent == session.folder.resolve()
    assert session.annotators() == [name]


@pytest.mark.parametrize("label", ["Block", "1", "", "block\n1,vertical"])
def test_only_classes_are_labels(session, label):
    with pytest.raises(InputError, match="wanted one of vertical, diagonal"):
        session.label("a", 0, label)
    assert not session.label_file("a").exists()


@pytest.mark.parametrize("number", [-1, 6])
def test_only_maps_of_the_session_are_labelled(session, number):
    with pytest.raises(InputError, match="0 to 5"):
        session.label("a", number, "block")


@pytest.mark.parametrize(
    "line",
    [
        "1",
        "1,blok",
        "1,block,2",
        "6,block",
        "-1,block",
        "one,block",
        "9" * 5000 + ",block",
        "²,block",
        "1,bl",
        '"1","block"',
        "1;block",
        "\x00",
        "number,label",
    ],
)
def test_a_damaged_line_is_an_error_with_its_place(session, line):
    path = write(session, f"0,block\n{line}\n2,vertical\n")
    with pytest.raises(InputError) as error:
        session.labels("a")
    assert str(error.value).startswith(f"{path}:2: found '{line[:20]}".replace("\x00", "\\x00"))
    assert len(str(error.value)) < 500 + len(str(path))


@pytest.mark.parametrize(
    "torn", ["2", "2,", "2,vert", "2,vertical", "2,vertical_dia", "2,undo\0", "\0\0"]
)
def test_a_last_line_that_was_cut_off_is_set_aside_and_said(session, torn):
    """A power loss once left half a line, and nothing of the session could be read.

    "2,vertical" may be the beginning of "2,vertical_diagonal".
    """
    path = write(session, f"0,block\n1,diagonal\n{torn}")
    assert session.labels("a") == {0: "block", 1: "diagonal"}
    (said,) = session.torn()
    assert said.startswith(f"{path}: the last line was cut off at {torn!r} and is left out")
    assert path.read_text() == f"0,block\n1,diagonal\n{torn}"  # to read writes nothing
    session.label("a", 2, "vertical_diagonal")
    assert path.read_text() == "0,block\n1,diagonal\n2,vertical_diagonal\n"
    assert session.torn() == []


@pytest.mark.parametrize("last", ["2,3", "2,vertical_diagonal", "2,undo", "2,vertical\n", "", " "])
def test_a_last_line_that_is_whole_counts_without_its_end(session, last):
    write(session, f"0,block\n{last}")
    assert session.torn() == []
    assert (2 in session.labels("a")) == ("vertical" in last or "3" in last)


@pytest.mark.parametrize("room", [0, 1, 3, 9])
def test_a_label_that_a_full_disk_cuts_leaves_the_file_as_it_was(session, room):
    session.label("a", 0, "block")
    size, (soft, hard) = len("0,block\n"), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, hard))
    try:
        with pytest.raises(OSError, match=r"No space left on device|File too large"):
            session.label("a", 1, "vertical_diagonal")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert session.label_file("a").read_text() == "0,block\n"
    session.label("a", 1, "vertical_diagonal")
    assert session.labels("a") == {0: "block", 1: "vertical_diagonal"}


def test_labels_that_are_no_text_are_an_error_that_names_the_file(session):
    path = write(session, b"0,block\n\xff\xfe\n")
    with pytest.raises(InputError, match=f"cannot read labels from {path}"):
        session.labels("a")


def test_a_file_may_be_written_by_hand(session):
    write(session, "\ufeffnumber,label\r\n0,1\r\n\r\n 2 , block \r\n3,5")
    assert session.labels("a") == {0: "vertical", 2: "block", 3: "heterogeneous"}
    session.label("a", 4, "diagonal")  # its last line had no end
    session.label("a", 5, "block")
    assert session.labels("a") == {
        0: "vertical",
        2: "block",
        3: "heterogeneous",
        4: "diagonal",
        5: "block",
    }


def test_what_csv_wrote_is_read(session):
    with session.label_file("a").open("w", newline="") as file:
        csv.writer(file).writerows([[0, "block"], [1, "undo"], [2, "vertical"]])
    assert session.labels("a") == {0: "block", 2: "vertical"}


def test_every_class_has_its_key_and_name():
    assert [one.key for one in CLASSES] == ["1", "2", "3", "4", "5"]
    assert NAMES == ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
