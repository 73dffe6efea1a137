"""Does a folder of gold links and a translator become a run, its page, and lines of the paper?"""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.alignment.made import gold_folder, saved
from headscope.cli.main import group
from headscope.errors import CorpusError, ModelError, RunFolderError
from headscope.experiments.alignment.align import align
from headscope.experiments.alignment.gold_alignments import read_gold
from headscope.experiments.alignment.translator import encode, load_translator
from headscope.papers.paper_data import find_data
from headscope.papers.quantities import Unmeasured
from headscope.papers.run_paper import find_paper
from headscope.run.store import open_run
from model.families.tiny import FAMILIES
from tasks.made import checkpoint

GRID, BOTH = ("layer", "head"), ("setting", "measure")
CONTRACT = {
    "aer": (*GRID, *BOTH),
    "layer_aer": ("layer", *BOTH),
    "mean_layer_aer": BOTH,
    "best_aer": BOTH,
    "held_out": BOTH,
    "highest_norm_layer_aer": ("setting",),
    "highest_norm_head_aer": ("setting",),
    "mean_norm": GRID,
    "spearman": ("setting",),
    "pearson": ("setting",),
}
# Typed from our notes on the paper's code, not from ours: AWO, then AWI.
TYPED = (
    "68.4",
    "47.7",
    "62.9",
    "41.4",
    "83.0",
    "87.1",
    "68.5",
    "29.8",
    "60.4",
    "25.0",
    "25.0",
    "35.5",
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A checkpoint, a folder of gold links, and a BERT with its text for all else."""
    folder = tmp_path_factory.mktemp("aligned")
    saved(folder / "translator")
    gold_folder(folder / "DeEn")
    checkpoint(folder / "bert")
    (folder / "text.txt").write_text("the cat a b .\n\nthe cats , a b .\n")
    return folder


@pytest.fixture(scope="module")
def gold(desk):
    return read_gold([desk / "DeEn"])


@pytest.fixture(scope="module")
def translator(desk):
    return load_translator(desk / "translator", languages=("de", "en"))


def test_the_run_holds_error_rates_with_intervals_over_the_pairs(translator, gold):
    found = align(translator, gold, replicates=20)["alignment"]
    for name, dims in CONTRACT.items():
        assert found[name].dims == dims
        assert {f"{name}_ci_low", f"{name}_ci_high"} <= set(found)
        assert found[name].attrs["units"] == "1"
        assert found[name].attrs["source"]
    assert found["setting"].values.tolist() == ["AWO", "AWI"]
    assert found["measure"].values.tolist() == ["weight", "norm"]
    assert ((found["aer"] >= 0) & (found["aer"] <= 1)).all()
    assert float(found["mean_norm"].min()) > 0
    low, high = found["mean_norm_ci_low"], found["mean_norm_ci_high"]
    assert bool((low <= found["mean_norm"]).all() & (found["mean_norm"] <= high).all())


def test_parts_and_batches_do_not_change_the_numbers(translator, gold, monkeypatch):
    whole = align(translator, gold, replicates=3)["alignment"]
    monkeypatch.setattr("headscope.experiments.alignment.align.PART", 2)
    monkeypatch.setattr("headscope.experiments.alignment.align.BATCH_TOKENS", 1)
    single = align(translator, gold, replicates=3)["alignment"]
    assert (whole["aer"] == single["aer"]).all()
    np.testing.assert_allclose(whole["mean_norm"], single["mean_norm"], rtol=1e-5)


def test_pairs_that_do_not_fit_are_left_out_and_counted(translator, gold, monkeypatch):
    lengths = [len(encode(translator, pair)) for pair in gold.pairs]
    monkeypatch.setattr(type(translator), "limit", max(lengths) - 1)
    counts = align(translator, gold, replicates=0).manifest["counts"]
    assert counts["skipped"] == lengths.count(max(lengths))
    assert counts["documents"] == len(lengths) - counts["skipped"]
    monkeypatch.setattr(type(translator), "limit", 1)
    with pytest.raises(CorpusError, match="no pair of sentences of at most 1 tokens"):
        align(translator, gold)


def test_a_finished_run_is_opened_and_other_links_are_another_run(
    translator, gold, tmp_path, monkeypatch
):
    first = align(translator, gold, output=tmp_path / "run", replicates=3, limit=3)
    assert first.manifest["counts"]["documents"] == 3
    with monkeypatch.context() as patch:
        patch.setattr("headscope.experiments.alignment.align.counts_of", None)
        again = align(translator, gold, output=tmp_path / "run", replicates=3, limit=3)
    assert (again["alignment"]["aer"] == first["alignment"]["aer"]).all()
    other = read_gold([gold_folder(tmp_path / "other", ("1-1", "1-1", "1-1", "1-1", "6-8"))])
    with pytest.raises(RunFolderError, match="holds a run with other settings"):
        align(translator, other, output=tmp_path / "run", replicates=3, limit=3)


@pytest.mark.parametrize("name", ["BERT", "GPT-2"])
def test_a_model_that_is_no_encoder_decoder_is_refused(name, tmp_path):
    FAMILIES[name].build().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"is no encoder-decoder.*wanted a translation model"):
        load_translator(tmp_path)


# --- through the paper ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines(desk):
    result = CliRunner().invoke(
        group,
        [
            "reproduce",
            "kobayashi2020",
            "--model",
            str(desk / "bert"),
            "--data",
            f"text={desk / 'text.txt'}",
            "--data",
            f"alignment={desk / 'DeEn'}",
            "--data",
            f"translator={desk / 'translator'}",
            "--replicates",
            "20",
            "--threads",
            "1",
            "--json",
            "--no-report",
            "-o",
            str(desk / "out"),
        ],
    )
    assert result.exit_code == 0, result.output
    return {line["key"]: line for line in json.loads(result.stdout)["lines"]}


def test_lines_read_the_numbers_of_the_run(lines, translator, gold):
    found = align(translator, gold, replicates=20)["alignment"]
    variables = [
        ("mean_layer_aer", "weight"),
        ("best_aer", "weight"),
        ("mean_layer_aer", "norm"),
        ("best_aer", "norm"),
        ("highest_norm_layer_aer", None),
        ("highest_norm_head_aer", None),
    ]
    for at, text in enumerate(TYPED):
        variable, measure = variables[at % 6]
        choice = {"setting": ("AWO", "AWI")[at // 6]} | ({"measure": measure} if measure else {})
        line = lines[f"alignment-{at}"]
        ours = 100 * float(found[variable].sel(choice))
        assert line["ours"] == pytest.approx(ours)
        assert line["published"][0]["text"] == text
        assert line["status"] in ("holds", "does not hold", "cannot tell", "not asked")
        assert "5 sentence pairs" in line["other_data"]
    for setting in ("AWO", "AWI"):
        for letter, name in (("ρ", "spearman"), ("r", "pearson")):
            wanted = float(found[name].sel(setting=setting))
            assert lines[f"alignment-{setting}-{letter}"]["ours"] == pytest.approx(wanted)
    best = found["best_aer"].sel(measure="norm")
    gap = float(best.sel(setting="AWO") - best.sel(setting="AWI"))
    assert lines["alignment-input"]["ours"] == pytest.approx(100 * gap)


def test_pages_show_the_error_rates_by_layer(lines, desk):
    page = (desk / "out/report.html").read_text("utf-8")
    assert "Layers: AWI" in page
    assert (desk / "out/figures/alignment-by-layer-and-by-head.svg").is_file()
    own = open_run(desk / "out/runs/alignment").report().read_text("utf-8")
    assert "How well cross-attention aligns words in" in own
    assert "Error rates of word alignment" in own
    assert "5 sentence pairs" in own


def test_without_a_translator_the_lines_say_where_to_get_one(desk):
    paper = find_paper("kobayashi2020")
    assert "alignment" in paper.runs
    data = find_data([f"alignment={desk / 'DeEn'}"], None)
    assert data.need("alignment").elsewhere == ""
    with pytest.raises(Unmeasured, match=r"needs translator: .*opus-mt-de-en"):
        data.need("translator")
    named = find_data(["translator=Helsinki-NLP/opus-mt-de-en"], None)
    assert str(named.need("translator").paths[0]) == "Helsinki-NLP/opus-mt-de-en"
