"""Do two finished runs say which heads have the same role, and refuse what they cannot compare?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import headscope as hs
from headscope.claims.reading import run_findings
from headscope.cli.main import main
from headscope.errors import InputError, RunFolderError
from headscope.experiments.comparison import compared_runs
from headscope.run import control
from headscope.wired import WiredHead, annotated_corpus, wire
from headscope.wired.decks import deck

# Eight heads that look elsewhere each, and not evenly: that an untrained one does, too.
NAMES = (
    "previous token",
    "next token",
    "two before",
    "self token",
    "to noun",
    "to verb",
    "stops and commas",
    "three on either side",
)
ORDER = (5, 2, 7, 0, 3, 6, 1, 4)  # of the second model


def atlas_of(family: str, layers: list[list[WiredHead]], output: Path) -> hs.Run:
    made = wire(family, layers, seed=len(layers), turned=True)
    return hs.atlas(
        hs.load(made.network, tokenizer=made.tokenizer),
        annotated_corpus(40, each=2),
        analyses=["explained"],
        control="random",
        execution=hs.Execution(linears="stock", threads=1),
        output=output,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[hs.Run, hs.Run]:
    """The same heads in a BERT of two layers, and in another order in one layer of a T5."""
    folder = tmp_path_factory.mktemp("runs")
    first, second = (
        {head.name: head for head in deck(family, "sentences", 10.0)} for family in ("bert", "t5")
    )
    rows = [[first[name] for name in NAMES[at : at + 4]] for at in (0, 4)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control, "MOST_SHUFFLED", 1)  # sixteen heads without training are enough
        return (
            atlas_of("bert", rows, folder / "bert"),
            atlas_of("t5", [[second[NAMES[at]] for at in ORDER]], folder / "t5"),
        )


@pytest.fixture(scope="module")
def roles(runs, tmp_path_factory) -> hs.Run:
    return hs.compare(*runs, output=tmp_path_factory.mktemp("roles") / "out")


def test_planted_heads_find_their_twins_in_another_architecture(roles):
    nearest = roles["same_roles"]["other_head"].values[..., 0].ravel().astype(int)
    assert [NAMES[ORDER[at]] for at in nearest] == list(NAMES)
    assert (roles["same_roles"]["margin_ci_low"] > 0).sum() >= 6
    assert (roles["same_roles"]["mutual"] == 1).all()


def test_the_page_and_the_table_say_it(roles, runs):
    page = roles.report().read_text("utf-8")
    for run in runs:
        assert f"{run.manifest['model']['name']}: 40 documents, 80 examples" in page
        assert f"{run.manifest['counts']['tokens']:,} tokens" in page
    size, weights = "1 layers × 8 heads", runs[1].manifest["model"]["sha256"]
    assert f"T5EncoderModel, {size}, weights {weights}" in page.replace("\u00a0", " ")
    assert "nothing, in each run" in page
    assert "Which heads do the same elsewhere?" in page
    assert run_findings(roles.tree)[0] in page.replace("\u00a0", " ")
    table = pd.read_csv(roles.path / "tables/nearest_heads.csv")
    assert len(table) == 8 * 3
    first = table[table["rank"] == 0].set_index("name")
    assert first["common_rule"]["L1·H1"] == "the previous token"
    assert set(first["verdict"]) <= {"same role", "cannot tell"}
    assert (roles.path / "figures/same_roles.svg").is_file()


def test_a_finished_comparison_is_opened_again(roles, runs):
    again = hs.compare(runs[0].path, runs[1].path, output=roles.path)
    assert again.manifest == roles.manifest | {"command": again.manifest["command"]}
    np.testing.assert_array_equal(again["same_roles"]["distance"], roles["same_roles"]["distance"])


def test_a_comparison_by_another_method_is_not_opened_and_not_lost(runs, tmp_path, monkeypatch):
    """It was opened as if it had been computed by this version."""
    folders = [run.path for run in runs]
    monkeypatch.setattr(compared_runs, "METHOD", compared_runs.METHOD - 1)
    before = hs.compare(*folders, output=tmp_path / "out")
    kept = (tmp_path / "out/atlas.nc").read_bytes()
    monkeypatch.undo()
    with pytest.raises(RunFolderError, match="in another way now") as refused:
        hs.compare(*folders, output=tmp_path / "out")
    assert "--overwrite compares them again" in str(refused.value)
    assert "method:" not in str(refused.value).replace("the method:", "")
    assert (tmp_path / "out/atlas.nc").read_bytes() == kept
    again = hs.compare(*folders, output=tmp_path / "out", execution=hs.Execution(overwrite=True))
    assert again.manifest["spec"]["method"] == before.manifest["spec"]["method"] + 1


def test_what_is_no_pair_of_runs_is_refused(runs, tmp_path):
    one, other = runs
    with pytest.raises(InputError, match="found one finished run, and demo; wanted two runs"):
        hs.compare(one, "demo")
    with pytest.raises(InputError, match="found limit beside two finished runs; leave it out"):
        hs.compare(one, other, limit=3)
    with pytest.raises(InputError, match="found corpus beside two finished runs"):
        hs.compare(one, other, ["A text."])
    with pytest.raises(InputError, match="that hold explained; wanted one"):
        hs.compare(one, other, also=[one])
    with pytest.raises(InputError, match="found also, and two models; wanted two finished runs"):
        hs.compare("demo", "demo", also=[one])


def test_the_command_compares_two_runs_and_counts_verdicts(runs, tmp_path, monkeypatch, capsys):
    folders = [str(run.path) for run in runs]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["headscope", "compare", *folders, "-o", "out", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    told = json.loads(capsys.readouterr().out)
    assert sum(told["heads"].values()) == len(NAMES)
    assert told["circuits"] == {}
    assert [one["model"] for one in told["compared"]] == ["BertModel", "T5EncoderModel"]
    assert (tmp_path / "out/report.html").is_file()
