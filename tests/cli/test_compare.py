"""Does `headscope compare` say what changed, on a task or any text, and refuse what cannot be?"""

from __future__ import annotations

import json
import shutil

import pytest

from cli.conftest import refused
from tasks.made import MOOD, checkpoint, rows, write_tsv

SMALL = ("--analyses", "surface,entropy", "--replicates", 20, "--linears", "stock", "--no-report")


@pytest.fixture
def desk(tmp_path):
    """Two tiny checkpoints and a task."""
    checkpoint(tmp_path / "one", seed=0)
    checkpoint(tmp_path / "two", seed=1, head=MOOD)
    checkpoint(tmp_path / "tall", num_hidden_layers=3)
    write_tsv(tmp_path / "mood/dev.tsv", rows(20))
    (tmp_path / "text.txt").write_text("The cat a b . The cats.\n\nA cat. a b , b the cat a b.\n")
    return tmp_path


@pytest.fixture
def compare(headscope, desk):
    """`headscope compare one two -o run ARGS`, small."""
    return lambda *args: headscope("compare", "one", "two", "-o", "run", *SMALL, *args)


def test_it_says_what_was_compared_what_changed_and_where_it_is(compare, desk):
    done = compare("--task", "mood", "--data", "mood")
    assert done.code == 0, done.err
    first, *rest = done.out.splitlines()
    assert first.startswith("one and two: 2 layers × 3 heads on 20 examples, 20 inputs, ")
    assert any(line.startswith("Of 6 heads, ") for line in rest)
    assert rest[-1] == "results: run/atlas.nc"
    manifest = json.loads((desk / "run/manifest.json").read_text())
    assert manifest["base"]["name"] == "one"
    assert manifest["model"]["name"] == "two"
    assert manifest["corpus"]["kind"] == "task mood"


def test_the_same_as_json_on_text_with_a_report(headscope, desk):
    given = [arg for arg in SMALL if arg != "--no-report"]
    done = headscope("compare", "one", "two", "--text", "text.txt", "-o", "run", *given, "--json")
    found = json.loads(done.out)
    assert found["report"] == "run/report.html"
    assert found["findings"]
    assert found["counts"]["documents"] == 2
    assert (desk / "run/figures/similarity.svg").is_file()
    assert (desk / "run/tables/change.csv").is_file()


def test_the_models_may_stand_behind_the_options(headscope, desk):
    done = headscope("compare", "--text", "text.txt", "one", "two", "-o", "run", *SMALL)
    assert done.code == 0, done.err


def test_examples_that_are_cut_are_told(compare):
    done = compare("--task", "mood", "--data", "mood", "--max-length", 8)
    assert "of 20 examples cut to 8 tokens" in done.out


def test_a_limit_draws_examples_by_the_seed(compare):
    done = compare("--task", "mood", "--data", "mood", "--limit", 5)
    assert "on 5 examples, 5 inputs" in done.out
    assert "5 of 20 examples, drawn with seed 0" in done.out


def test_running_it_again_opens_what_is_there(compare, desk):
    compare("--text", "text.txt")
    before = (desk / "run/atlas.nc").stat().st_mtime_ns
    again = compare("--text", "text.txt")
    assert "resumed: 1 of 1 shards were finished before" in again.out
    assert (desk / "run/atlas.nc").stat().st_mtime_ns == before


STRANGE = [
    {"id": "nul \0", "text_a": "a\0b the cat a b . the cat a"},
    {"id": "half \ud800", "text_a": "שלום the cat a b . the cat a b ."},
    {
        "id": "</script><b>",
        "text_a": "the cat 👩‍👩‍👧 a b . the cat a",
        "text_b": "\u202eright the cat",
    },
    {"id": "same", "text_a": "the cats a b . the cat a b ."},
    {"id": "one", "text_a": "cat"},
    {"id": "none", "text_a": " "},
    {"id": "ready", "tokens": ["[CLS]", "[SEP]", "cat"]},
]


def test_strange_texts_and_names_are_compared_and_reported(headscope, desk):
    (desk / "odd.jsonl").write_text("\n".join(json.dumps(row) for row in STRANGE))
    given = [arg for arg in SMALL if arg != "--no-report"]
    done = headscope("compare", "one", "two", "--segments", "odd.jsonl", "-o", "run", *given)
    assert done.code == 0, done.err
    assert "skipped: 1 × empty" in done.out
    page = (desk / "run/report.html").read_text("utf-8")
    assert "</script><b>" not in page
    assert (desk / "run/tables/changed_examples.csv").is_file()


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            (),
            ["no inputs to compare the models on; give the examples of a task (--task rte --data"],
        ),
        (("--data", "mood"), ["found --data mood and no task; give --task NAME too"]),
        (
            ("--task", "mood", "--data", "mood", "--text", "text.txt"),
            ["found --task mood and --text; wanted only one of them"],
        ),
        (("--task", "mood", "--data", "nowhere"), ["nowhere"]),
        (("--task", "rte", "--data", "mood"), ["mood"]),
        (("--text", "nowhere.txt"), ["nowhere.txt"]),
        (("--text", "text.txt", "--padded-to", 4), ["a length of 4 tokens"]),
        (("--text", "text.txt", "--padded-to", 2), ["--padded-to"]),
        (("--text", "text.txt", "--replicates", -1), ["-1 is not in the range x>=0"]),
        (("--text", "text.txt", "--set", "entropy.smoothing=2"), ["smoothing is 2"]),
        (("--text", "text.txt", "--analyses", "features"), ["features needs a corpus with"]),
    ],
    ids=lambda value: " ".join(map(str, value[-2:])) if isinstance(value, tuple) else None,
)
def test_a_wrong_request_is_two_and_a_few_lines(compare, desk, given, says):
    refused(compare(*given), *says)
    assert not (desk / "run").exists()


def test_models_of_other_shapes_are_refused(headscope, desk):
    done = headscope("compare", "one", "tall", "--text", "text.txt", "-o", "run", *SMALL)
    refused(done, "'one' 2 layers × 3 heads (encoder) and 'tall' 3 layers × 3 heads", "one shape")
    assert not (desk / "run").exists()


def test_an_output_that_is_a_file_is_refused_before_a_model(headscope, desk):
    (desk / "notes").write_text("x")
    done = headscope("compare", "no", "no", "--text", "text.txt", "-o", "notes/run", *SMALL)
    refused(done, "notes is a file")


def test_a_damaged_record_of_the_training_is_refused(compare, desk):
    (desk / "two/finetuned.json").write_text("{}")
    refused(compare("--text", "text.txt"), "two/finetuned.json is no record of a training")


def test_another_tokenizer_is_refused(compare, desk):
    text = (desk / "two/tokenizer.json").read_text()
    (desk / "two/tokenizer.json").write_text(text.replace('"cat"', '"dog"'))
    refused(compare("--text", "text.txt"), "the tokenizers differ", "one vocabulary")


def test_pickled_weights_are_refused(compare, desk):
    shutil.move(desk / "two/model.safetensors", desk / "two/pytorch_model.bin")
    refused(compare("--text", "text.txt"), "pytorch_model.bin", "refused")
