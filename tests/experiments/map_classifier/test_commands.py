"""Do the commands make, resume, hand out and compare labelling sessions?"""

import json
import re
import signal
import urllib.request
from collections import Counter

import pytest

from cli.conftest import Done, refused
from commands import PATIENCE, started
from commands import headscope as process_of
from experiments.map_classifier.made import make_drawn
from headscope.cli.main import main
from headscope.experiments.map_classifier.annotation_session import Session

HEAVY = ["torch", "transformers", "numba", "scipy", "sklearn", "xarray", "matplotlib", "numpy"]
TEXT = "\n\n".join(
    f"The {name} walked to the market and came back with a basket of ripe red apples."
    for name in ("girl", "boy", "old man", "farmer")
)


@pytest.fixture
def headscope(capsys, monkeypatch, tmp_path):
    """Runs `headscope patterns ARGS` from an empty folder; no page is served, none opened."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "headscope.live.server.LiveServer.run", lambda _, ready=lambda: None: ready()
    )
    monkeypatch.setattr("click.launch", lambda url: print(f"launched {url}"))

    def run(*args: object) -> Done:
        monkeypatch.setattr("sys.argv", ["headscope", "patterns", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Done(0 if code is None else int(code), *capsys.readouterr())

    return run


@pytest.fixture
def files(tmp_path):
    (tmp_path / "tales.txt").write_text(TEXT)
    pair = {"id": "p", "text_a": "The boy has a red kite.", "text_b": "The kite is red, he says."}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair) + "\n")


@pytest.fixture
def made(tmp_path):
    return Session.create(tmp_path / "s", make_drawn(25))


# --- making and resuming ----------------------------------------------------------------------


def test_a_session_is_drawn_from_models_and_files_alike(headscope, files):
    done = headscope(
        "annotate",
        "demo",
        "--text",
        "tales.txt",
        "--segments",
        "pairs.jsonl",
        "--demo",
        "--maps",
        54,
        "--seed",
        3,
        "-o",
        "s",
        "--no-browser",
    )
    assert done.code == 0, done.err
    assert done.out.startswith(
        "session: s, 0 of 54 maps labelled by a\nlabelling: http://127.0.0.1:"
    )
    assert "launched" not in done.out
    session = Session("s")
    rows = session.provenance
    assert Counter((r["text"], r["layer"]) for r in rows) == {
        (text, str(layer)): 3 for text in ("demo", "tales.txt", "pairs.jsonl") for layer in range(6)
    }
    assert {r["model"] for r in rows} == {"demo"}
    order = [r["text"] for r in rows]
    assert order != sorted(order)
    boundaries = {text: {int(r["boundary"]) for r in rows if r["text"] == text} for text in order}
    assert boundaries["demo"] == {-1}  # single sentences
    assert boundaries["pairs.jsonl"] == {9}  # [CLS], seven tokens, [SEP]


def test_the_same_command_gives_the_same_session_and_another_seed_another(headscope):
    def names(seed, folder):
        done = headscope(
            "annotate", "demo", "--demo", "--limit", 3, "--maps", 12, "--seed", seed, "-o", folder
        )
        assert done.code == 0, done.err
        return [tuple(row.values()) for row in Session(folder).provenance]

    assert names(0, "one") == names(0, "two") != names(1, "three")


def test_files_of_one_name_stay_two_kinds_of_text(headscope, tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(TEXT)
    (tmp_path / "demo").write_text(TEXT)
    done = headscope(
        "annotate",
        "demo",
        "--text",
        "x/a.txt",
        "y/a.txt",
        "demo",
        "--demo",
        "--limit",
        3,
        "--maps",
        8,
        "-o",
        "s",
    )
    assert done.code == 0, done.err
    assert {row["text"] for row in Session("s").provenance} == {
        "text x/a.txt",
        "text y/a.txt",
        "text demo",
        "demo",
    }


def test_long_inputs_are_read_in_windows_that_the_eye_can_take(headscope, tmp_path):
    (tmp_path / "long.txt").write_text(" ".join(["apples and pears"] * 300))
    more = ("demo", "--text", "long.txt", "--passages", "line", "--maps", 6)
    assert headscope("annotate", *more, "-o", "usual").code == 0
    assert max(Session("usual").sizes) == 128
    done = headscope("annotate", *more, "--max-length", 100_000, "-o", "longest")
    assert done.code == 0, done.err
    assert max(Session("longest").sizes) == 512  # what the model takes


def test_a_session_is_resumed_without_model_and_corpus(headscope, made):
    made.label("a", 0, "block")
    before = (made.folder / "maps.npz").read_bytes()
    done = headscope("annotate", "-o", "s")
    assert done.code == 0
    assert re.fullmatch(
        r"session: s, 1 of 25 maps labelled by a\n"
        r"labelling: http://127\.0\.0\.1:\d+/[\w-]{32}/ \(Ctrl-C ends it; every label is kept at "
        r"once\)\nlaunched file://\S+/open\.html\n\nsession: s, 1 of 25 maps labelled by a\n",
        done.out,
    )
    done = headscope("annotate", "no-such-model", "--demo", "-o", "s", "--annotator", "b")
    assert done.code == 0  # the same command goes on
    assert "0 of 25 maps labelled by b\nthe session continues with its maps" in done.out
    assert (made.folder / "maps.npz").read_bytes() == before


def test_json_is_one_line_with_the_address(headscope, made):
    done = headscope("annotate", "-o", "s", "--json", "--no-browser")
    found = json.loads(done.out)
    assert found.pop("address").startswith("http://127.0.0.1:")
    assert found == {"session": "s", "maps": 25, "annotator": "a", "labelled": 0}


def test_sheets_say_where_the_labels_belong_and_how_they_are_written(headscope, made):
    done = headscope("annotate", "-o", "s", "--sheets", "--annotator", "b")
    assert done.code == 0
    assert "sheets: 2 in s/sheets\nlabels: s/labels-b.csv, one line for each map" in done.out
    example = re.search(r"say `(.*)`", done.out)[1]
    (made.folder / "labels-b.csv").write_text(example + "\n")
    assert made.labels("b") == {0: "vertical"}
    assert sorted(p.name for p in (made.folder / "sheets").iterdir()) == ["0000.png", "0020.png"]
    found = json.loads(headscope("annotate", "-o", "s", "--sheets", "--json").out)
    assert found["sheets"] == ["s/sheets/0000.png", "s/sheets/0020.png"]
    assert (found["labels"], found["maps"]) == ("s/labels-a.csv", 25)


# --- a real process ---------------------------------------------------------------------------


def test_ctrl_c_ends_the_server_quietly_with_all_labels_kept(made, tmp_path):
    with started("patterns", "annotate", "-o", "s", "--no-browser", cwd=tmp_path) as process:
        assert process.stdout.readline() == "session: s, 0 of 25 maps labelled by a\n"
        address = process.stdout.readline().split()[1]
        request = urllib.request.Request(
            address + "label",
            b'{"number": 7, "label": "block"}',
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert json.load(answer)["number"] == 7
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, "")
    assert out == "\nsession: s, 1 of 25 maps labelled by a\n"
    assert made.labels("a") == {7: "block"}


@pytest.mark.parametrize("command", ["annotate", "agreement"])
def test_help_imports_nothing_heavy(command, tmp_path):
    code = (
        "import sys\nfrom headscope.cli.main import main\n"
        f"sys.argv = ['headscope', 'patterns', {command!r}, '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    done = process_of(cwd=tmp_path, code=code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert f"Usage: headscope patterns {command}" in done.stdout


def test_labelling_and_comparing_need_no_torch(made, tmp_path):
    code = (
        "import sys, headscope.live.annotation\n"
        "import headscope.experiments.map_classifier.annotation_session\n"
        "print('torch' in sys.modules)"
    )
    assert process_of(cwd=tmp_path, code=code).stdout == "False\n"


# --- agreement --------------------------------------------------------------------------------


def test_every_two_annotators_are_compared(headscope, made):
    # a and b agree on 3 of 4; by chance on 0.5 * 0.75 + 0.5 * 0.25 = 0.5: kappa 0.25 / 0.5 = 0.5.
    for number, (ours, theirs) in enumerate(
        [("vertical", "vertical")] * 2 + [("block", "block"), ("block", "vertical")]
    ):
        made.label("a", number, ours)
        made.label("b", number, theirs)
    made.label("c", 0, "vertical")
    done = headscope("agreement", "s")
    assert done.code == 0
    assert "a and b: Cohen's kappa 0.500; the same class for 3 of 4 maps\n" in done.out
    assert "b and c: Cohen's kappa undefined, as both used one class only; the same" in done.out
    rows = [line.split()[-5:] for line in done.out.splitlines()[2:7]]
    assert rows == [list("20000"), list("00000"), list("00000"), list("10010"), list("00000")]
    found = json.loads(headscope("agreement", "s", "--json").out)
    assert [pair["annotators"] for pair in found["pairs"]] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert [pair["kappa"] for pair in found["pairs"]] == [0.5, None, None]
    assert found["pairs"][0]["confusion"][3] == [1, 0, 0, 1, 0]
    assert (found["pairs"][0]["maps"], found["pairs"][0]["same"]) == (4, 3)


def test_annotators_who_share_no_map_are_told_so(headscope, made):
    made.label("a", 0, "block")
    made.label("b", 1, "block")
    assert headscope("agreement", "s").out == "a and b: no map that both labelled\n"


# --- wrong requests ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["annotate", "-o", "new"], "new is no session yet; wanted a MODEL and a corpus"),
        (["annotate", "demo", "-o", "new"], "no corpus; give one or more of --text"),
        (["annotate", "demo", "--text", "no.txt", "-o", "new"], "no.txt"),
        (["annotate", "demo", "x", "--demo", "--maps", "1", "-o", "new"], "found 2 models"),
        (["annotate"], "--output session\nheadscope: session is no session yet; wanted a MODEL"),
        (["annotate", "demo", "--demo", "--maps", "0", "-o", "new"], "--maps"),
        (["annotate", "demo", "--demo", "--annotate", "x", "-o", "new"], "no plain text"),
        (["annotate", "demo", "--demo", "--max-length", "1", "-o", "new"], "a length of 1 tokens"),
        (["annotate", "demo", "--demo", "--max-length", "5", "-o", "new"], "0 inputs of 10 tokens"),
        (["annotate", "demo", "--demo", "--limit", "1", "--maps", "99999", "-o", "new"], "fewer"),
        (["annotate", "-o", "s", "--annotator", "../x"], "found the annotator '../x'"),
        (["annotate", "-o", "s", "--port", "99999"], "--port"),
        (["agreement", "new"], "new is no labelling session"),
        (["agreement", "s"], "s: found labels of nobody; wanted two annotators"),
        (["agreement"], "Missing argument 'SESSION'"),
    ],
)
def test_what_is_wrong_is_told_in_a_few_lines_and_leaves_nothing(
    headscope, made, tmp_path, args, says
):
    refused(headscope(*args), says)
    assert not (tmp_path / "new").exists()


def test_a_wrong_name_is_told_before_maps_are_drawn(headscope, tmp_path):
    args = ("annotate", "demo", "--demo", "-o", "new", "--annotator", "../x")
    refused(headscope(*args), "found the annotator '../x'")
    assert not (tmp_path / "new").exists()


def test_a_label_that_was_cut_off_is_told_and_nothing_is_written_by_who_reads(headscope, made):
    (made.folder / "labels-a.csv").write_text("0,block\n1,blo")
    (made.folder / "labels-b.csv").write_text("0,block\n")
    before = {p: p.read_bytes() for p in made.folder.iterdir()}
    for command in (("agreement", "s"), ("annotate", "-o", "s", "--no-browser")):
        done = headscope(*command)
        assert done.code == 0
        assert "labels-a.csv: the last line was cut off at '1,blo' and is left out" in done.err
    assert {p: p.read_bytes() for p in made.folder.iterdir()} == before


def test_damaged_labels_are_told_with_their_place(headscope, made):
    (made.folder / "labels-a.csv").write_text("0,block\n1,blok\n")
    (made.folder / "labels-b.csv").write_text("0,block\n")
    refused(headscope("agreement", "s"), "labels-a.csv:2: found '1,blok'")
    refused(headscope("annotate", "-o", "s"), "labels-a.csv:2: found '1,blok'")
