"""How does a command end when the request or the input is wrong?"""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import pytest

from headscope.cli.terminal_output import prepare, refusal

from .conftest import TREE, refused


@pytest.fixture
def file(tmp_path):
    """Writes a file into the folder that commands run from."""

    def write(name, content):
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(content)
        return name

    return write


# --- wrong requests -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch"], ["No such command 'nosuch'", "see headscope --help"]),
        (["atls"], ["No such command 'atls'; did you mean 'atlas'?"]),
        (["patterns", "anotate"], ["'anotate'; did you mean 'annotate'?"]),
        (["atlas", "demo", "--demo", "-o", "x", "--limt", "3"], ["Did you mean", "--limit"]),
        (
            ["atlas", "demo", "--demo", "-o", "x", "--relations", "nsbj"],
            ["no relation 'nsbj' in this corpus; did you mean 'nsubj'? there are"],
        ),
        (
            ["atlas", "demo", "--demo", "-o", "x", "--set", "entropy.smoothin=0.1"],
            ["no option 'smoothin'; did you mean 'smoothing'?"],
        ),
        (["atlas", "demo", "--demo", "-o", "x", "--device", "cud"], ["did you mean 'cuda'?"]),
        (["atlas"], ["Missing argument 'MODEL'", "see headscope atlas --help"]),
        (["atlas", "demo"], ["headscope: --output atlas-demo", "no corpus; give one or more of"]),
        (
            ["view", "demo", "A cat.", "-o", "no/such/x.html"],
            ["there is no folder no/such for"],
        ),
        (["atlas", "weights.gguf", "--demo"], ["cannot load 'weights.gguf'"]),
        (["atlas", "demo", "-o", "x"], ["no corpus; give one or more of --text FILE"]),
        (["atlas", "demo", "--demo", "-o", "x", "--colour"], ["No such option", "--colour"]),
        (["atlas", "demo", "--demo", "-o", "x", "--workers", "0"], ["--workers"]),
        (["atlas", "demo", "--demo", "-o", "x", "--long", "cut"], ["'cut' is not one of"]),
        (["atlas", "demo", "--demo", "-o", "x", "--limit", "0"], ["0 is not in the range x>=1"]),
        (["atlas", "demo", "--demo", "-o", "x", "--max-length", "3"], ["a length of 3 tokens"]),
        (
            ["atlas", "demo", "--demo", "-o", "x", "--max-length", "9999"],
            ["to 512 (what the model"],
        ),
        (
            ["atlas", "demo", "--demo", "-o", "x", "--analyses", "entropi"],
            ["'entropi'; did you mean 'entropy'? there are"],
        ),
        (["atlas", "demo", "--demo", "-o", "x", "--analyses", ","], ["leave analyses out to run"]),
        (["atlas", "demo", "--demo", "-o", "x", "--set", "smoothing=1"], ["ANALYSIS.OPTION=VALUE"]),
        (
            ["atlas", "demo", "--demo", "-o", "x", "--set", "entropy.smoothing=2"],
            ["smoothing is 2"],
        ),
        (
            ["atlas", "demo", "--demo", "-o", "x", "--device", "toaster"],
            ["no device 'toaster' here"],
        ),
        (["atlas", "./nowhere", "--demo", "-o", "x"], ["./nowhere", "wanted a hub id"]),
        (["report", "nowhere"], ["nowhere is no run folder"]),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else None,
)
def test_a_wrong_request_is_two_and_a_few_lines(headscope, tmp_path, arguments, says):
    refused(headscope(*arguments), *says)
    assert not os.listdir(tmp_path)


def test_a_model_in_gguf_is_refused_with_the_calls_that_convert_it(headscope, file, tmp_path):
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama/config.json").write_text("{}")
    (tmp_path / "llama/q4.gguf").write_bytes(b"GGUF")
    call = "AutoModelForCausalLM.from_pretrained('llama', gguf_file='q4.gguf').save_pretrained(FOL"
    refused(headscope("atlas", "llama", "--demo"), "weights in GGUF alone (q4.gguf)", call)
    refused(headscope("atlas", "llama/q4.gguf", "--demo"), "is a file; wanted a folder", call)


def test_corpora_beside_the_demo_are_said_to_be_read_too(headscope, file):
    file("a.txt", "A cat sat on a mat.")
    done = headscope("atlas", "demo", "--demo", "--text", "a.txt", "-o", "a.txt")
    said = "headscope: --demo and --text: all of them are read, as one corpus\n"
    assert done.err.startswith(said)
    assert "a.txt is a file; wanted a folder for the run" in done.err


def test_no_arguments_show_the_help(headscope):
    done = headscope()
    assert done.code == 2
    assert "Commands:" in done.err


def test_an_output_below_a_file_is_refused_before_the_model(headscope, file):
    file("notes", "x")
    refused(headscope("atlas", "nowhere", "--demo", "-o", "notes/run"), "notes is a file")


def test_an_output_with_other_things_is_left_alone(atlas, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years")
    refused(atlas("--demo", "--overwrite"), "holds 'thesis.tex' but no run")
    assert os.listdir(tmp_path / "run") == ["thesis.tex"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a /proc that refuses new files")
def test_an_output_that_cannot_be_written_is_refused(headscope):
    done = headscope("atlas", "demo", "--demo", "--limit", 1, "-o", "/proc/headscope")
    refused(done, "cannot write", "choose another place with -o")


# --- models ---------------------------------------------------------------------------------


def test_pickled_weights_are_refused(headscope, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "bert"}')
    (model / "pytorch_model.bin").write_bytes(b"\x80\x04")
    refused(headscope("atlas", "model", "--demo", "-o", "run"), "pytorch_model.bin", "refused")


def test_control_characters_of_names_never_reach_the_terminal(headscope):
    done = headscope("atlas", "\x1b[31mred", "--demo", "-o", "run")
    refused(done, "\\x1b[31mred")
    assert "\x1b" not in done.err


# --- corpora --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "content", "says"),
    [
        ("--text", b"", "is empty (0 bytes)"),
        ("--text", b" \n\n \t\n", "holds only white space"),
        ("--text", b"fine\nnot \xff fine\n", "bad:2: byte 0xff at offset 9 is not valid UTF-8"),
        ("--segments", b"", "is empty (0 bytes)"),
        ("--segments", b'{"text_a": "x"}\n{"text_a": \n', "bad:2: not valid JSON"),
        ("--segments", b'{"text_a": "x"}\n\n[1]\n', "bad:3: found a JSON list"),
        ("--segments", b'{"text_a": 5}\n', 'bad:1: "text_a" is 5'),
        ("--segments", b'{"tokens": ["[CLS]", "qqqq", "[SEP]"]}', "another vocabulary"),
        ("--segments", b"[" * 100_000, "bad:1: "),
        ("--treebank", b"", "is empty (0 bytes)"),
        ("--treebank", TREE.replace("\t0\troot", "\t7\troot").encode(), "bad:3: sentence s1: "),
        ("--treebank", TREE.replace("\tVERB", "").encode(), "bad:3: sentence s1: found 9 tab"),
        ("--treebank", b"# only a comment\n\n", "holds no sentence"),
    ],
)
def test_a_malformed_corpus_is_refused_with_file_and_line(atlas, file, option, content, says):
    refused(atlas(option, file("bad", content)), says)


@pytest.mark.parametrize("option", ["--text", "--segments", "--treebank", "--frequency"])
def test_a_missing_file_is_named(atlas, option):
    demo = ["--demo"] if option == "--frequency" else []
    refused(atlas(*demo, option, "nowhere.txt"), "nowhere.txt")


def test_malformed_ranks_are_refused_before_the_model(headscope, file):
    file("ranks", "1 900 2\nthe 40\n")
    done = headscope("atlas", "nowhere", "--demo", "--frequency", "ranks", "-o", "run")
    refused(done, "ranks:2: 'the 40'")


def test_a_corpus_of_nothing_readable_is_refused(atlas, file):
    file("empty", '{"text_a": ""}\n{"text_a": "\\ud800"}\n')
    refused(atlas("--segments", "empty"), "2 documents read, none with an input")


STRANGE = [
    {"id": "nul", "text_a": "a\u0000b"},
    {"id": "right to left", "text_a": "שלום עולם، مرحبا بالعالم"},
    {"id": "one", "text_a": "cat"},
    {"id": "nothing", "text_a": ""},
    {"id": "white", "text_a": " \t\n"},
    {"id": "lone \ud800", "text_a": "half a pair: \ud83d"},
    {"id": "\ud800 in the name", "text_a": "fine"},
    {"id": "emoji", "text_a": "👩‍👩‍👧 🏳️‍🌈", "text_b": "\u202eright"},
    {"id": "ready", "tokens": ["[CLS]", "[SEP]"]},
    {"id": "ready and fine", "tokens": ["[CLS]", "cat", "[SEP]"]},
]


def test_strange_texts_are_read_or_counted_as_skipped(atlas, file):
    rows = [json.dumps(row) for row in STRANGE]
    done = atlas("--segments", file("strange \x1b[2J😀.jsonl", "\n".join(rows)))
    assert done.code == 0, done.err
    assert "6 inputs" in done.out
    assert "skipped: 3 × empty (nothing, white, ready)" in done.out
    assert "skipped: 1 × not valid Unicode (lone \\ud800)" in done.out
    assert "\x1b" not in done.out


def test_a_word_of_a_megabyte_is_read(atlas, file):
    done = atlas("--text", file("long", "A cat. " + "x" * 1_000_000))
    assert done.code == 0, done.err
    assert "unknown: 1 of 4 tokens (25%) are unknown" in done.out  # WordPiece: one [UNK]


@pytest.mark.parametrize("passages", ["line", "packed"])
def test_a_document_of_ten_thousand_tokens_is_windowed_skipped_or_refused(
    atlas, file, tiny_place, passages
):
    """Skipping is asked of a corpus that also holds something short."""
    file("long", "cat " * 10_000 + "\n\nA short one.\n")
    given = ["--text", "long", "--passages", passages, "--max-length", 128]
    done = atlas(*given, model=tiny_place)
    assert done.code == 0, done.err
    assert "windowed: 1 passage longer than an input" in done.out
    counts = re.search(r"([\d,]+) inputs, ([\d,]+) tokens", done.out).groups()
    inputs, tokens = (int(count.replace(",", "")) for count in counts)
    assert tokens == 10_000 + 4 + 2 * inputs  # every token once, and [CLS] and [SEP] around
    done = atlas(*given, "--long", "skip", "--overwrite", model=tiny_place)
    assert done.code == 0, done.err
    assert "skipped: 1 × longer than 128 tokens (long:1" in done.out
    assert "1 input, 6 tokens" in done.out
    done = atlas(*given, "--long", "error", "--overwrite", model=tiny_place)
    refused(done, "has 10002 tokens and 128 fit")


# --- disks, bugs and tracebacks -------------------------------------------------------------


def test_a_full_disk_is_one_and_the_run_goes_on_later(atlas, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small tmpfs (root)")
    try:
        given = ["--demo", "--shard-tokens", 800, "-o", "disk/run"]
        refused(atlas(*given), "no space left", "finished parts of a run folder are kept", code=1)
        kept = len(list(disk.glob("run/shards/*/*.shard")))
        assert kept
        subprocess.run(["mount", "-o", "remount,size=9m", str(disk)], check=True)
        done = atlas(*given)
        assert done.code == 0, done.err
        assert f"resumed: {kept} of 7 shards" in done.out
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_fills_while_the_report_is_made_is_one(headscope, atlas, monkeypatch):
    assert atlas("--demo", "--limit", 1).code == 0

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused(headscope("report", "run"), "no space left", code=1)


def test_a_bug_of_ours_shows_a_traceback_only_when_asked(headscope, monkeypatch, tmp_path):
    def bug(*_):
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("headscope.run.store.open_run", bug)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/atlas.nc").touch()
    refused(headscope("report", "run"), "ZeroDivisionError: a\n", "--debug", code=1)
    with pytest.raises(ZeroDivisionError):
        headscope("report", "run", "--debug")


def test_debug_shows_the_traceback_wherever_it_stands(headscope):
    from headscope.errors import RunFolderError

    for arguments in (["--debug", "report", "x"], ["report", "x", "--debug"]):
        with pytest.raises(RunFolderError):
            headscope(*arguments)


def test_damaged_results_are_refused_with_a_way_out(headscope, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "atlas.nc").write_bytes(b"not HDF5")
    refused(headscope("report", "run"), "atlas.nc is damaged")


# --- doctor ---------------------------------------------------------------------------------


def test_doctor_finds_everything_in_order(headscope, file):
    file("text", "A cat sat. It slept.")
    done = headscope("doctor", "--text", "text", "--json")
    assert done.code == 0, done.out
    found = {line["check"]: line for line in json.loads(done.out)}
    assert not [line for line in found.values() if line["verdict"] == "BAD"]
    assert found["model"]["found"].startswith("<headscope.Model demo: BertModel")
    assert "6×12" in found["attention"]["found"]
    assert found["corpus"]["found"].startswith("1 document, 1 input,")


def test_doctor_ends_with_one_for_a_broken_model_and_a_broken_corpus(headscope, tmp_path):
    """Click once swallowed its exit code."""
    (tmp_path / "model").mkdir()
    (tmp_path / "text").write_bytes(b"\xff")
    done = headscope("doctor", "model", "--text", "text")
    assert done.code == 1
    assert " BAD  model" in done.out
    assert "no config.json" in done.out
    assert " BAD  corpus" in done.out
    assert "Traceback" not in done.out + done.err


# --- what is listed and summed up -----------------------------------------------------------


def test_analyses_lists_what_each_tells_with_its_options(headscope):
    done = headscope("analyses")
    assert done.code == 0
    assert "--set entropy.smoothing=0.0" in done.out
    rows = {row["name"]: row for row in json.loads(headscope("analyses", "--json").out)}
    assert rows.keys() >= {"surface", "entropy", "norms", "mixing", "divergence"}
    assert all(row["summary"] and row["source"] and row["needs"] for row in rows.values())


def test_a_run_sums_itself_up_for_people_and_for_programs(headscope, atlas, tmp_path):
    first = atlas("--demo", "--limit", 2, model="demo")
    assert first.code == 0, first.err
    assert first.err == ""
    assert first.out.startswith("demo: 6 layers × 12 heads on 2 documents")
    assert first.out.endswith("results: run/atlas.nc\n")
    assert not (tmp_path / "run" / "report.html").exists()
    second = json.loads(atlas("--demo", "--limit", 2, "--json", model="demo").out)
    assert second["run"] == "run"
    assert second["report"] is None
    assert second["counts"]["documents"] == 2
    assert second["analyses"] == ["entropy"]
    done = headscope("report", "run", "--json")
    assert json.loads(done.out)["report"] == "run/report.html"
    assert (tmp_path / "run" / "report.html").exists()
    page = (tmp_path / "run" / "report.html").stat().st_mtime_ns
    assert atlas("--demo", "--limit", 2, model="demo").out.endswith("report: run/report.html\n")
    assert (tmp_path / "run" / "report.html").stat().st_mtime_ns == page


def test_another_spec_is_refused_by_name_and_overwritten_on_demand(atlas):
    assert atlas("--demo", "--limit", 1).code == 0
    refused(atlas("--demo", "--limit", 2), "settings.limit: 1, now 2", "--overwrite")
    done = atlas("--demo", "--limit", 2, "--overwrite")
    assert (done.code, "on 2 documents" in done.out) == (0, True)


def test_a_folder_that_was_moved_is_still_a_run(headscope, atlas, tmp_path):
    assert atlas("--demo", "--limit", 1).code == 0
    with tarfile.open("run.tar", "w") as archive:
        archive.add("run")
    shutil.rmtree(tmp_path / "run")
    with tarfile.open("run.tar") as archive:
        archive.extractall("elsewhere", filter="data")
    assert headscope("report", "elsewhere/run").code == 0


@pytest.mark.parametrize("epoch", ["soon", "99999999999999999999"])
def test_a_time_of_build_that_is_none_does_no_harm(monkeypatch, epoch):
    """`head` said that results are damaged, where a library could not read the variable."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    prepare()
    assert "SOURCE_DATE_EPOCH" not in os.environ


def test_of_an_odd_environment_what_other_packages_raise_is_told_in_words(tmp_path, monkeypatch):
    """Both were "an error of headscope"."""
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    with pytest.raises(FileNotFoundError) as nowhere:
        tempfile._get_default_tempdir()
    assert "name one with TMPDIR" in refusal(nowhere.value)
    code = "import numba"
    environment = {**os.environ, "NUMBA_NUM_THREADS": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    kind, _, said = done.stderr.splitlines()[-1].partition(": ")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    assert kind == "ValueError"
    assert refusal(ValueError(said)).startswith("found '0' as NUMBA_NUM_THREADS; wanted a number")


# --- help, versions and Ctrl-C ----------------------------------------------------------------


def test_help_is_a_command_too(headscope):
    assert headscope("help").out == headscope("--help").out
    assert "help" in headscope("help").out.split("Commands:")[1]
    for words in (["atlas"], ["patterns", "annotate"]):
        done = headscope("help", *words)
        assert (done.code, done.out) == (0, headscope(*words, "--help").out)
    refused(headscope("help", "atls"), "No such command 'atls'; did you mean 'atlas'?")


def test_a_short_v_is_the_version(headscope):
    assert headscope("-v").out == headscope("--version").out != ""


def test_ctrl_c_ends_a_command_and_a_run_with_130(headscope, atlas, monkeypatch, tmp_path):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("headscope.run.store.open_run", stopped)
    (tmp_path / "old").mkdir()
    (tmp_path / "old/atlas.nc").touch()
    done = headscope("report", "old")
    assert (done.code, done.out, done.err) == (130, "", "\nheadscope: stopped\n")
    monkeypatch.setattr("headscope.model.checkpoint.Checkpoint", stopped)
    monkeypatch.setattr("headscope.model.model.Checkpoint", stopped)
    said = "headscope: stopped; the same command goes on from what is finished\n"
    refused(atlas("--demo", "--limit", 1), said, code=130)
