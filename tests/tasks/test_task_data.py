"""Are the files of GLUE, the hub and the user read as they are meant, or refused with a reason?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from headscope.errors import CorpusError, HeadscopeError, InputError
from headscope.tasks.task import GLUE, Task, find_task
from headscope.tasks.task_data import read_task

# The layouts as GLUE ships them: header (none in CoLA's), two rows, and what they say.
OFFICIAL = {
    "rte": (
        "index\tsentence1\tsentence2\tlabel",
        ["0\tIt rains.\tIt is wet.\tentailment", '1\tA "dog.\tA cat.\tnot_entailment'],
        [("It rains.", "It is wet.", 0), ('A "dog.', "A cat.", 1)],
    ),
    "sst-2": (
        "sentence\tlabel",
        ["a fine film \t1", 'dull "and\t0'],
        [("a fine film ", None, 1), ('dull "and', None, 0)],
    ),
    "sts-b": (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        ["0\tg\tf\t2012\t1\tn\tn\tA man.\tA boy.\t2.500", "1\tg\tf\t2012\t2\tn\tn\tX.\tX.\t5"],
        [("A man.", "A boy.", 2.5), ("X.", "X.", 5.0)],
    ),
    "mrpc": (
        "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        ['1\t7\t8\tHe "said so.\tSo he said.', "0\t9\t10\tYes.\tNo."],
        [('He "said so.', "So he said.", 1), ("Yes.", "No.", 0)],
    ),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
        ["5\t1\t2\tWhy?\tHow come?\t1", "6\t3\t4\tWho?\tWhere?\t0"],
        [("Why?", "How come?", 1), ("Who?", "Where?", 0)],
    ),
    "qnli": (
        "index\tquestion\tsentence\tlabel",
        ["0\tWho?\tShe.\tentailment", "1\tWhen?\tIt is.\tnot_entailment"],
        [("Who?", "She.", 0), ("When?", "It is.", 1)],
    ),
    "mnli": (
        "index\tpromptID\tgenre\tsentence1_parse\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label",
        [
            "0\tp\tg\t( x )\tA.\tB.\tneutral\tcontradiction\tcontradiction",
            "1\tp\tg\t( y )\tC.\tD.\tentailment\tneutral\tneutral",
        ],
        [("A.", "B.", 2), ("C.", "D.", 1)],
    ),
    "cola": (
        None,
        ["gj04\t1\t\tThey drank the pub dry.", 'gj04\t0\t*\tThey "drank the pub.'],
        [("They drank the pub dry.", None, 1), ('They "drank the pub.', None, 0)],
    ),
    "wnli": (
        "index\tsentence1\tsentence2\tlabel",
        ["0\tI put it down.\tIt was down.\t1", "1\tHe fell.\tShe fell.\t0"],
        [("I put it down.", "It was down.", 1), ("He fell.", "She fell.", 0)],
    ),
}


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def read(data):
    return [(row.text_a, row.text_b, row.label) for row in data.rows]


@pytest.mark.parametrize("name", GLUE)
def test_the_official_layout_of_every_glue_task_is_read(name, tmp_path):
    header, lines, wanted = OFFICIAL[name]
    file = "dev_matched.tsv" if name == "mnli" else "dev.tsv"
    write(tmp_path / file, *([header] if header else []), *lines)
    found = read_task(name, tmp_path)
    assert read(found) == wanted
    assert found.task is GLUE[name]
    assert found.notes == ()
    assert found.labels.tolist() == [label for *_, label in wanted]
    assert found.labels.dtype == (np.float64 if name == "sts-b" else np.int64)


def test_the_whole_of_glue_in_one_folder_is_found_by_the_tasks_own_folder(tmp_path):
    for folder, name in (("RTE", "rte"), ("QNLI", "qnli")):
        header, lines, _ = OFFICIAL[name]
        write(tmp_path / folder / "dev.tsv", header, *lines)
    assert read_task("RTE", tmp_path).source == str(tmp_path / "RTE" / "dev.tsv")
    assert read(read_task("qnli", tmp_path)) == OFFICIAL["qnli"][2]


@pytest.mark.parametrize(
    ("name", "split", "count", "first"),
    [
        ("rte", "dev", 277, 1),
        ("rte", "train", 2490, 1),
        ("sst-2", "dev", 872, 1),
        ("sst-2", "train", 8000, 0),
        ("sts-b", "dev", 1500, 5.0),
        ("sts-b", "train", 5749, 5.0),
    ],
)
def test_the_real_files_beside_the_checkout_are_read_whole(name, split, count, first, shared):
    found = read_task(name, shared / "data/glue", split=split)
    assert len(found) == count
    assert found.rows[0].label == first
    if name == "sts-b":
        assert found.labels.min() >= 0
        assert found.labels.max() <= 5
    else:
        assert set(found.labels.tolist()) == {0, 1}


def test_any_spelling_of_a_glue_task_is_found():
    assert find_task("SST2") is find_task("sst_2") is GLUE["sst-2"]
    with pytest.raises(InputError, match="no task 'boolq'; there are rte, sst-2, sts-b"):
        find_task("boolq")


MINE = [
    {"title": "good", "body": "yes, it is", "mood": "glad"},
    {"title": "bad", "body": 'no, "it"\nis not', "mood": "sad"},
    {"title": "so so", "body": "it is", "mood": "glad"},
]


def as_file(folder: Path, kind: str, rows: list[dict]) -> Path:
    path = folder / f"mine.{kind}"
    frame = pd.DataFrame(rows)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n\n" for row in rows), "utf-8")
    else:
        flat = [[str(cell).replace("\n", " ") for cell in row.values()] for row in rows]
        write(path, "\t".join(rows[0]), *("\t".join(cells) for cells in flat))
    return path


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "parquet"])
def test_a_file_of_the_users_is_read_with_columns_that_are_named(kind, tmp_path):
    path = as_file(tmp_path, kind, MINE)
    columns = {"text_a": "title", "text_b": "body", "label": "mood"}
    found = read_task("mine", path, columns=columns)
    assert found.task == Task("mine", ("glad", "sad"), ("accuracy", "f1"))
    bodies = [row["body"] if kind != "tsv" else row["body"].replace("\n", " ") for row in MINE]
    assert [row.text_b for row in found.rows] == bodies
    assert found.labels.tolist() == [0, 1, 0]
    assert found.notes == ("'mine' is a task of yours: classes glad, sad, in this order",)


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("names", "pair"),
    [(("text_a", "text_b"), True), (("premise", "hypothesis"), True), (("text", "other"), False)],
)
def test_the_usual_column_names_are_recognised(kind, names, pair, tmp_path):
    rows = [{names[0]: f"a{n}", names[1]: f"b{n}", "label": n % 2, "id": f"x{n}"} for n in range(3)]
    found = read_task("mine", as_file(tmp_path, kind, rows))
    assert [row.text_b for row in found.rows] == (
        [f"b{n}" for n in range(3)] if pair else [None] * 3
    )
    assert [row.id for row in found.rows] == ["x0", "x1", "x2"]
    assert found.task.labels == ("0", "1")


def test_a_second_text_can_be_another_column_or_none(tmp_path):
    path = write(tmp_path / "a.tsv", "text_a\ttext_b\tmore\tlabel", "a\tb\tc\t0", "d\te\tf\t1")
    seconds = [
        [row.text_b for row in read_task("mine", path, columns=columns).rows]
        for columns in (None, {"text_b": "more"}, {"text_b": ""}, {"text_a": "more"})
    ]
    assert seconds == [["b", "e"], ["c", "f"], [None, None], [None, None]]


def test_ids_that_repeat_give_way_to_the_numbers_of_the_rows(tmp_path):
    path = write(tmp_path / "a.tsv", "id\ttext\tlabel", "7\ta\t0", "7\tb\t1")
    assert [row.id for row in read_task("mine", path).rows] == ["0", "1"]


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (["0.5", "1.5", "2"], ()),
        ([str(n) for n in range(30)], ()),
        (["3", "1", "2"], ("1", "2", "3")),
        (["10", "9", "10"], ("9", "10")),
        (["1", "-1", "-1"], ("-1", "1")),
        (["b", "a", "B"], None),
        (["yes", "no", "no"], ("no", "yes")),
    ],
)
def test_numbers_are_a_regression_or_classes_and_words_are_classes(labels, wanted, tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel", *(f"t\t{label}" for label in labels))
    if wanted is None:  # two classes that differ in case only
        with pytest.raises(InputError, match="wanted two different ones"):
            read_task("mine", path)
        return
    assert read_task("mine", path).task.labels == wanted


def test_classes_that_are_called_by_numbers_are_never_taken_for_ids(tmp_path):
    """Class "2" is the second of 1, 2, 3; by its id it would be the third."""
    frame = pd.DataFrame({"text": list("abc"), "label": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "a.parquet")
    found = read_task("stars", tmp_path / "a.parquet")
    assert found.task.labels == ("1", "2", "3")
    assert found.labels.tolist() == [0, 1, 2]
    with pytest.raises(CorpusError, match="label '0'; wanted 1, 2, 3 "):
        read_task(found.task, write(tmp_path / "b.tsv", "text\tlabel", "a\t0", "b\t1"))


def test_a_given_task_reads_words_in_its_own_order(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel", "t\tglad", "u\tSAD", "v\t0")
    task = Task("mood", ("sad", "glad"), ("accuracy",))
    assert read_task(task, path).labels.tolist() == [1, 0, 0]


def test_a_limit_draws_the_same_rows_for_the_same_seed_and_keeps_their_order(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel", *(f"t{n}\t{n % 2}" for n in range(50)))
    first, again = (read_task("mine", path, limit=10, seed=1) for _ in range(2))
    other = read_task("mine", path, limit=10, seed=2)
    numbers = [int(row.text_a[1:]) for row in first.rows]
    assert numbers == sorted(numbers)
    assert first.rows == again.rows != other.rows
    assert first.notes[-1] == "10 of 50 examples, drawn with seed 1"
    assert first.sha256 == other.sha256  # of the file
    assert first.rows_sha256 != other.rows_sha256
    assert len(read_task("mine", path, limit=99)) == 50


def test_broken_rows_of_glue_are_left_out_and_told(tmp_path):
    header, lines, wanted = OFFICIAL["qqp"]
    write(tmp_path / "train.tsv", header, lines[0], "7\t8\tWhy so?", lines[1])
    found = read_task("qqp", tmp_path, split="train")
    assert read(found) == wanted
    assert found.notes == ("1 broken rows left out (first: line 3, 3 cells under 6 columns)",)


HEAD = "sentence1\tsentence2\tlabel"
BAD = {
    "empty": ("rte", [HEAD], "has no row that can be read; wanted one example or more"),
    "a label that is no class": (
        "rte", [HEAD, "a\tb\t0", "c\td\tmaybe"],
        "line 3: label 'maybe'; wanted entailment, not_entailment, or 0 to 1 (column 'label')",
    ),
    "a label out of range": ("rte", [HEAD, "a\tb\t2"], "line 2: label '2'; wanted entailment"),
    "half a class": ("rte", [HEAD, "a\tb\t0.5"], "line 2: label '0.5'; wanted entailment"),
    "a missing label": (
        "rte", [HEAD, "a\tb\t"], "line 2: label missing; wanted a split with labels (dev, not test)"
    ),
    "a hidden label": ("rte", [HEAD, "a\tb\t-1"], "line 2: label missing; wanted a split"),
    "no label column": (
        "rte", ["index\tsentence1\tsentence2", "0\ta\tb"],
        "has no labels: none of its columns 'index', 'sentence1', 'sentence2' is one of gold_label",
    ),
    "one class only": (
        "rte", [HEAD, "a\tb\t1", "c\td\t1"],
        "every row has the label 'not_entailment'; wanted different ones",
    ),
    "one text where the task has two": (
        "rte", ["text\tlabel", "a\t1"], "has the columns 'text', 'label'; wanted two texts",
    ),
    "a score that is no number": (
        "sts-b", ["sentence1\tsentence2\tscore", "a\tb\tnan"],
        "line 2: label 'nan'; wanted a finite number (column 'score')",
    ),
    "an infinite score": (
        "sts-b", ["sentence1\tsentence2\tscore", "a\tb\tinf"], "label 'inf'; wanted a finite",
    ),
    "a score in words": ("sts-b", ["sentence1\tsentence2\tscore", "a\tb\tgood"], "label 'good'"),
    "scores that are all alike": (
        "sts-b", ["sentence1\tsentence2\tscore", "a\tb\t3", "c\td\t3.0"],
        "every row has the label 3.0",
    ),
    "a broken row of the user's": (
        "mine", ["text\tlabel", "a\t0", "b"],
        "line 3: 1 cells under 2 columns; wanted one cell for each column (text, label)",
    ),
    "labels like texts": (
        "mine", ["text\tlabel", *(f"t\tanswer {n}" for n in range(40))],
        "the label column holds 40 different texts in 40 rows",
    ),
    "no labels at all": ("mine", ["text\tlabel", "a\t", "b\t"], "all labels are missing"),
    "one class of the user's": (
        "mine", ["text\tlabel", "a\tx", "b\tx"],
        "every row has the label 'x'",
    ),
    "nothing but nan": (
        "mine", ["text\tlabel", "a\tnan", "b\tnan"],
        "every row has the label 'nan'",
    ),
    "two columns of one name": (
        "mine", ["text\ttext\tlabel", "a\tb\t0"],
        "two columns named 'text'",
    ),
    "wrong columns": (
        "mine", ["x\ty", "1\t2"],
        "has the columns 'x', 'y'; wanted one text or two, say sentence1 and sentence2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_data_ends_in_one_to_three_lines_that_say_where(case, tmp_path):
    name, lines, message = BAD[case]
    path = write(tmp_path / "dev.tsv", *lines)
    with pytest.raises(HeadscopeError) as error:
        read_task(name, path)
    assert message in str(error.value)
    assert str(path) in str(error.value) or "task 'mine'" in str(error.value)
    assert len(str(error.value).splitlines()) <= 3
    assert error.value.exit_code == 2


def test_a_missing_file_folder_or_split_says_what_is_there(tmp_path):
    with pytest.raises(CorpusError, match="does not exist"):
        read_task("rte", tmp_path / "absent.tsv")
    write(tmp_path / "train.tsv", HEAD, "a\tb\t0")
    with pytest.raises(CorpusError, match=r"no dev split: found train.tsv; wanted dev.tsv"):
        read_task("rte", tmp_path)
    (tmp_path / "notes.docx").write_text("x")
    with pytest.raises(CorpusError, match=r"ends in '.docx'; wanted one of .tsv, .csv, .jsonl"):
        read_task("rte", tmp_path / "notes.docx")
    (tmp_path / "none.tsv").write_text("")
    with pytest.raises(CorpusError, match="is empty"):
        read_task("rte", tmp_path / "none.tsv")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text_a": "nope"}, "has no column 'nope'; it has 'sentence1', 'sentence2', 'label'"),
        ({"words": "label"}, "no role 'words'; there are text_a, text_b, label, id"),
        ({"text_a": "sentence1"}, "text_b is not given; this task compares two texts"),
    ],
)
def test_columns_that_do_not_exist_are_refused(columns, message, tmp_path):
    path = write(tmp_path / "dev.tsv", HEAD, "a\tb\t0", "c\td\t1")
    with pytest.raises(InputError, match=message):
        read_task("rte", path, columns=columns)


def test_files_that_are_no_tables_are_refused(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"text\tlabel\na\xff\t0\n")
    with pytest.raises(CorpusError, match="line 2: byte 0xff at offset 12 is not valid UTF-8"):
        read_task("mine", tmp_path / "a.tsv")
    (tmp_path / "a.csv").write_bytes(b"text,label\na\xff,0\n")
    with pytest.raises(CorpusError, match="cannot be read as CSV in UTF-8"):
        read_task("mine", tmp_path / "a.csv")
    write(tmp_path / "b.csv", "text,label", '"never closed,0')
    with pytest.raises(CorpusError, match="cannot be read as CSV"):
        read_task("mine", tmp_path / "b.csv")
    write(tmp_path / "a.jsonl", '{"text": "a", "label": 0}', "[1]")
    with pytest.raises(CorpusError, match="line 2: no JSON object"):
        read_task("mine", tmp_path / "a.jsonl")
    write(tmp_path / "b.jsonl", '{"text": ')
    with pytest.raises(CorpusError, match="line 1: no JSON"):
        read_task("mine", tmp_path / "b.jsonl")
    write(tmp_path / "c.jsonl", '{"text": "a", "label": 0}', '{"label": 1}')
    with pytest.raises(CorpusError, match="line 2: column 'text' holds None; wanted text"):
        read_task("mine", tmp_path / "c.jsonl")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(CorpusError, match="cannot be read as parquet"):
        read_task("mine", tmp_path / "a.parquet")


def test_a_line_separator_inside_a_sentence_ends_no_row(tmp_path):
    write(tmp_path / "a.tsv", "text\tlabel", "a\u2028b\x0bc\t0", "d\t1")
    assert read_task("mine", tmp_path / "a.tsv").rows[0].text_a == "a\u2028b\x0bc"


# --- the hub --------------------------------------------------------------------------------


class Split:
    """As much of a split of `datasets` as is used."""

    def __init__(self, rows):
        self.rows, self.column_names = rows, list(rows[0])

    def __iter__(self):
        return iter(self.rows)


@pytest.fixture
def hub(monkeypatch):
    """Stands for `datasets` and the hub: set `.answer`; `.asked` is what was asked for."""
    bars = {"shown": True}

    def load_dataset(*names, split, **options):
        made.asked.append((*names, split, options["revision"], library.config.HF_HUB_OFFLINE))
        assert not bars["shown"]
        if isinstance(made.answer, Exception):
            raise made.answer
        return Split(made.answer)

    def info(_self, name, timeout):
        if made.commit is None:
            raise ConnectionError("no route")
        return SimpleNamespace(sha=made.commit)

    made = SimpleNamespace(asked=[], answer=[], commit="c0ffee", bars=bars)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", info)
    library = SimpleNamespace(
        load_dataset=load_dataset,
        config=SimpleNamespace(HF_HUB_OFFLINE=False),
        are_progress_bars_disabled=lambda: not bars["shown"],
        disable_progress_bars=lambda: bars.update(shown=False),
        enable_progress_bars=lambda: bars.update(shown=True),
    )
    monkeypatch.setitem(sys.modules, "datasets", library)
    return made


def test_without_data_the_task_comes_from_the_hub_at_one_commit(hub):
    hub.answer = [
        {"premise": "A.", "hypothesis": "B.", "label": 2, "idx": 0},
        {"premise": "C.", "hypothesis": "D.", "label": 0, "idx": 1},
    ]
    found = read_task("mnli", None)
    assert hub.asked == [("nyu-mll/glue", "mnli", "validation_matched", "c0ffee", False)]
    assert read(found) == [("A.", "B.", 2), ("C.", "D.", 0)]
    assert found.source == "nyu-mll/glue mnli, validation_matched at c0ffee"
    assert len(found.sha256) == 64
    read_task("mnli", None, split="train")
    assert hub.asked[-1][:3] == ("nyu-mll/glue", "mnli", "train")
    assert hub.bars["shown"]


def test_a_hub_out_of_reach_is_asked_once_and_is_a_clear_error(hub):
    hub.commit, hub.answer = None, ConnectionError("Couldn't reach it\nlong story")
    with pytest.raises(
        CorpusError, match=r"cannot read nyu-mll/glue sst2, .*: Couldn't reach it\n"
    ):
        read_task("sst-2", None)
    (asked,) = hub.asked
    assert asked[-2:] == (None, True)
    assert not sys.modules["datasets"].config.HF_HUB_OFFLINE
    assert hub.bars["shown"]


@pytest.mark.parametrize(("task", "label"), [("rte", -1), ("sts-b", -1.0)])
def test_the_hidden_labels_of_a_test_split_are_told(hub, task, label):
    hub.answer = [{"sentence1": "a", "sentence2": "b", "label": label} for _ in range(3)]
    with pytest.raises(CorpusError, match=r"label missing; wanted a split|every row has the label"):
        read_task(task, None, split="test")


def test_without_the_extra_the_hub_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'headscope\[train\]', or give --data"):
        read_task("rte", None)


def test_a_task_of_the_users_needs_its_data():
    with pytest.raises(InputError, match=r"'mine' is not one of GLUE .*give its data: --data"):
        read_task("mine", None)
