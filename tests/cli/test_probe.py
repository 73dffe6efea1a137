"""Does `headscope probe` say what it found, and refuse what it cannot do?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file, save_file

from cli.conftest import refused
from experiments.probes.made import VECTORS, tiny, treebank
from headscope.claims.head_labels import run_labels
from headscope.run.store import open_run
from tasks.made import checkpoint

QUICK = ("--replicates", 20, "--linears", "stock", "--structural-epochs", 1)


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    tiny(folder)
    treebank(folder / "train.conllu", 25)
    treebank(folder / "test.conllu", 15, seed=1)
    (folder / "vectors.txt").write_text(VECTORS, "utf-8")
    return folder


@pytest.fixture
def probe(headscope, desk: Path):
    files = ("--train", desk / "train.conllu", "--test", desk / "test.conllu")
    return lambda *args: headscope("probe", desk / "model", *files, "-o", "run", *QUICK, *args)


def test_all_probes_are_told_drawn_and_tabled(probe, desk: Path, tmp_path: Path) -> None:
    done = probe("--words", desk / "vectors.txt", "--curve", "5,10", "--tree")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    words = sum(map(bool, (desk / "test.conllu").read_text().splitlines()))
    assert lines[1] == f"23 sentences trained on, 2 chosen by, 15 tested on ({words} words)"
    assert lines[2].startswith("word vectors: vectors.txt, 3 numbers; ")
    for name in ("right-branching", "attention + words", "random model + words"):
        assert any(line.strip().startswith(name) and "UAS" in line for line in lines), name
    assert "structural probe, best of the layers by UUAS: layer" in done.out
    assert "features of 40 sentences take" in done.err
    for figure in ("probes", "probe_heads", "structural"):
        assert (tmp_path / f"run/figures/{figure}.svg").is_file(), figure
    heads = pd.read_csv(tmp_path / "run/tables/probe_heads.csv")
    assert len(heads) == 2 * 3 * 2
    assert heads["influence"].abs().is_monotonic_decreasing
    page = (tmp_path / "run/report.html").read_text("utf-8")
    for part in ("probes", "probe_heads", "structural"):
        assert f'id="part-{part}"' in page
    assert "read over 40 sentences" in page


def test_json_holds_the_scores(probe) -> None:
    done = probe("--probes", "right_branching,attention", "--no-report", "--json", "--quiet")
    told = json.loads(done.out)
    assert set(told["probes"]) == {"right_branching", "attention"}
    low, high = told["probes"]["attention"]["ci"]
    assert low <= told["probes"]["attention"]["uas"] <= high
    assert done.err == ""


def test_without_vectors_the_summary_says_what_is_missing(probe) -> None:
    done = probe("--no-report")
    assert "not run, as they need --words: attention_words, distances_words, random_words" in (
        done.out
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--probes", "attention,gaze"), "no probe called 'gaze'"),
        (("--probes", "attention_words"), "needs word vectors; give --words FILE"),
        (("--curve", "ten"), "--curve ten; wanted numbers from 1"),
        (("--curve", "100"), "found 100 sentences in --curve"),
        (("--structural-layers", "3"), "found layer 3;"),
        (("--rate", "0"), "found a rate of 0.0"),
        (("--features-limit", "0.000001"), "--features-limit allows 1e-06 GB"),
        (("--words", "nowhere.txt"), "cannot read word vectors from nowhere.txt"),
        (("--dev", "run.conllu"), "run.conllu does not exist; wanted a corpus file"),
        (("--atlas", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_is_refused(probe, given, says: str) -> None:
    done = probe(*given, "--quiet")
    refused(done, says)
    assert says in done.err


def test_test_data_that_was_learned_from_is_refused(headscope, desk: Path) -> None:
    files = ("--train", desk / "train.conllu", "--test", desk / "train.conllu")
    done = headscope("probe", desk / "model", *files, "-o", "run")
    refused(done)
    assert "are the same file" in done.err


def test_long_sentences_are_told(headscope, desk: Path, tmp_path: Path) -> None:
    files = ("--train", desk / "train.conllu", "--test", desk / "test.conllu", "--max-length", 7)
    more = ("--probes", "attention", "--no-report", "--quiet", *QUICK)
    windowed = headscope("probe", desk / "model", *files, "-o", "run", *more)
    assert " sentences were longer and read in windows" in windowed.out
    assert "words were not asked for: their heads are in another window" in windowed.out
    skipped = headscope("probe", desk / "model", *files, "-o", "two", *more, "--long", "skip")
    assert " sentences were skipped: longer than 7 tokens" in skipped.out


def test_heads_are_named_as_in_an_atlas_of_the_same_model(
    headscope, desk: Path, tmp_path: Path
) -> None:
    sharp = shutil.copytree(desk / "model", tmp_path / "sharp")  # heads that rest on few tokens
    weights = load_file(sharp / "model.safetensors")
    queries = {name: 30 * tensor for name, tensor in weights.items() if ".query." in name}
    save_file(weights | queries, sharp / "model.safetensors", metadata={"format": "pt"})
    atlas = ("--treebank", desk / "test.conllu", "--analyses", "surface,entropy", "--no-report")
    assert headscope("atlas", sharp, *atlas, "-o", "atlas").code == 0
    files = ("--train", desk / "train.conllu", "--test", desk / "test.conllu")

    def probe(*args: str):
        return headscope("probe", sharp, *files, "-o", "run", *QUICK, *args)

    done = probe("--probes", "attention", "--atlas", "atlas", "--quiet")
    assert done.code == 0, done.err
    heads = pd.read_csv(tmp_path / "run/tables/probe_heads.csv", keep_default_na=False)
    labels = run_labels(open_run(tmp_path / "atlas").tree)
    assert any(map(any, labels))
    for row in heads.itertuples():
        assert row.label == labels[row.layer][row.head]
    other = checkpoint(tmp_path / "other", seed=1)
    assert headscope("atlas", other, *atlas, "-o", "others").code == 0
    refused(probe("--probes", "attention", "--atlas", "others", "--quiet"), "has other weights")
