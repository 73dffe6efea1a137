"""Does `headscope zoo` say what holds for whom, end rightly, and refuse what cannot be?"""

from __future__ import annotations

import json
import shutil

import pytest

from cli.conftest import refused
from tasks.made import checkpoint

SMALL = ("--analyses", "surface,entropy", "--replicates", 20, "--no-report")


@pytest.fixture
def zoo(headscope, tmp_path):
    """`headscope zoo ARGS -o out`, small, beside two tiny models and a text."""
    checkpoint(tmp_path / "one", num_hidden_layers=3)
    checkpoint(tmp_path / "two", seed=1)
    (tmp_path / "text.txt").write_text("The cat a b . The cats.\n\nA cat. a b , b the cat a b.\n")

    def run(*args, linears="stock"):
        return headscope("zoo", *args, "-o", "out", *SMALL, "--linears", linears)

    return run


def test_it_says_what_holds_and_ends_with_1_where_a_model_failed(zoo, tmp_path):
    shutil.copytree(tmp_path / "one", tmp_path / "torn")
    (tmp_path / "torn/model.safetensors").write_bytes(b"torn")
    done = zoo("one", "two", "torn", "--text", "text.txt", "--json")
    assert done.code == 1
    assert "headscope: torn: cannot load 'torn'" in done.err
    told = json.loads(done.out)
    assert list(told["runs"]) == ["one", "two"]
    assert list(told["failed"]) == ["torn"]
    assert told["claims"]
    assert (tmp_path / told["report"]).is_file()
    again = zoo("one", "two", "--text", "text.txt")
    assert again.code == 0
    assert again.out.startswith("one: 3 layers × 3 heads on 2 documents, ")
    assert "\n- Whether " in again.out  # two documents show nothing
    assert again.out.endswith("report: out/report.html\n")


def test_a_run_that_was_begun_with_other_linear_maps_says_that_it_stays_so(zoo):
    words = ("one", "--text", "text.txt")
    assert "note: the run" not in zoo(*words).out
    for more in ((), ("--shard", "1/1")):
        done = zoo(*words, *more, linears="onednn")
        assert "\none: note: the run was begun with --linears stock, and stays so" in done.out
    told = json.loads(zoo(*words, "--json", linears="onednn").out)
    assert "stays so" in told["notes"]["one"][0]


def test_what_cannot_be_is_refused_before_a_model_is_loaded(zoo, tmp_path):
    refused(zoo("one", "./one", "--text", "text.txt"), "2 times; name each once")
    itself = "is one of the models and their control"
    refused(zoo("two", "./one", "--text", "text.txt", "--control", "one"), itself)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    refused(zoo("two", "copy", "--text", "text.txt", "--control", "one"), f"'copy' {itself}")
    refused(zoo("one", "two"), "no corpus; give one or more of --text")
    refused(zoo("./none", "--text", "text.txt"), "cannot load './none': no folder here")
    refused(zoo("one", "./none", "--text", "text.txt"), "cannot load './none': no folder here")
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out/manifest.json").write_text("{}")
    refused(zoo("one", "--text", "text.txt"), "is no manifest of a run")
