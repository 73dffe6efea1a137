"""Are the rules of a finished atlas tried as they are, on its own model?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from experiments.replay.made import FEW, STOCK
from headscope.analyses.explained.rules import STAND_IN
from headscope.claims.attention_rule import AttentionRule
from headscope.claims.reading import run_findings
from headscope.errors import InputError, ModelError
from headscope.experiments.replay import choosing
from headscope.experiments.replay.of_atlas import atlas_rules
from headscope.experiments.replay.replay import replay
from headscope.run.manifest_file import model_or_run
from headscope.run.store import Run, open_run

DEMO = {"limit": 4, **FEW, "execution": STOCK, "shares": (0.5,), "draws": 0}


@pytest.fixture(scope="module")
def atlas(tiny_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of a tiny encoder, whose model lies beside it."""
    place = tmp_path_factory.mktemp("of_atlas")
    shutil.copytree(tiny_place, place / "model")
    hs.atlas(
        str(place / "model"),
        hs.demo_corpus(),
        analyses=["explained"],
        limit=6,
        output=place / "run",
        control="none",
    )
    return place / "run"


def with_explained(run: Run, explained: xr.Dataset) -> Run:
    tree = run.tree.copy()
    tree["explained"] = xr.DataTree(explained)
    return Run(tree, run.manifest, run.path)


def test_the_rules_of_the_atlas_are_tried_and_none_are_chosen(
    atlas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("rules were chosen once more")

    monkeypatch.setattr(choosing, "read_sample", refuse)
    run = replay(atlas, corpus=hs.demo_corpus(), **DEMO)
    before = open_run(atlas)["explained"]
    for name in ("rule", "weight", "rest", "key_token_id", "key_factor"):
        np.testing.assert_array_equal(run["explained"][name], before[name])
    assert run["replay"].attrs["rules_of"] == "atlas"


def test_a_head_moves_the_output_as_its_rules_written_out_do(atlas: Path) -> None:
    """Without key tokens, which `hs.explain` leaves out, both ways are one."""
    run = open_run(atlas)
    explained = run["explained"]
    explained["key_factor"] = xr.ones_like(explained["key_factor"])
    plain = with_explained(run, explained)
    place = max(
        np.ndindex(2, 4),
        key=lambda at: explained["weight"].sel(explains="attention").values[at].sum(),
    )
    both = replay(plain, corpus=hs.demo_corpus(), rules=hs.explain(plain.tree, place), **DEMO)
    moved = both["replay"]["loss"].sel(order="chosen").isel(share=0)
    assert float(moved.sel(replacement="rules")) > 1e-6
    assert float(moved.sel(replacement="rules")) == pytest.approx(
        float(moved.sel(replacement="your_rules")), rel=1e-5
    )


def test_rest_alone_is_the_rest_of_its_rules(atlas: Path) -> None:
    run = open_run(atlas)
    (one,) = hs.explain(run.tree, "L2H3")["heads"].values()
    alone = {"heads": {"L2H3": {"rest": one["rest"]}}}
    both = replay(atlas, corpus=hs.demo_corpus(), rules=alone, **DEMO)
    moved = both["replay"]["loss"].sel(order="chosen").isel(share=0)
    assert float(moved.sel(replacement="rest")) == pytest.approx(
        float(moved.sel(replacement="your_rules")), rel=1e-9
    )
    rules = float(moved.sel(replacement="rules"))
    assert rules != pytest.approx(float(moved.sel(replacement="rest")), rel=1e-3)


def test_relations_are_those_of_the_trees_of_the_atlas(atlas: Path, tmp_path: Path) -> None:
    """Texts without trees try the rules all the same: where there is no tree, heads rest."""
    (tmp_path / "plain.txt").write_text("the cat sat on the mat .\n\n" * 3 + words(), "utf-8")
    rules = json.loads(open_run(atlas)["explained"].attrs["rules"])
    assert any("→" in name for name in rules)
    run = replay(atlas, corpus=str(tmp_path / "plain.txt"), **{**DEMO, "limit": None})
    assert json.loads(run["explained"].attrs["rules"]) == rules


def words() -> str:
    random = np.random.default_rng(0)
    lines = (" ".join(random.choice(["dog", "sees", "a", "red", "bus"], 8)) for _ in range(30))
    return "\n\n".join(lines) + "\n"


def test_it_is_said_whether_inputs_that_try_may_have_chosen(atlas: Path, tmp_path: Path) -> None:
    same = replay(atlas, corpus=hs.demo_corpus(), **DEMO)
    assert same["replay"].attrs["chosen_on_tried"] == "possible"
    assert any("may have chosen them there" in note for note in same.notes)
    (tmp_path / "other.txt").write_text(words(), "utf-8")
    other = replay(atlas, corpus=str(tmp_path / "other.txt"), **{**DEMO, "limit": None})
    assert other["replay"].attrs["chosen_on_tried"] == "no"
    assert not any("chosen" in note for note in other.notes)
    assert "The rules are those of an atlas that read other files." in run_findings(other.tree)
    texts = replay(atlas, corpus=words().split("\n\n"), **{**DEMO, "limit": None})
    assert texts["replay"].attrs["chosen_on_tried"] == "unknown"


def test_a_model_that_is_gone_or_another_is_refused(atlas: Path, tmp_path: Path) -> None:
    shutil.copytree(atlas.parent, tmp_path / "place")
    run = open_run(tmp_path / "place/run")
    moved = Run(run.tree, json.loads(json.dumps(run.manifest)), run.path)
    moved.manifest["model"]["name"] = str(tmp_path / "place/gone")
    with pytest.raises(ModelError, match=r"is a run of '.*gone': cannot load"):
        replay(moved, corpus=hs.demo_corpus(), **DEMO)
    moved.manifest["model"]["name"] = "demo"
    with pytest.raises(InputError, match="demo has other weights now"):
        replay(moved, corpus=hs.demo_corpus(), **DEMO)


def test_an_atlas_that_did_not_know_a_rest_keeps_the_numbers_of_its_rules(atlas: Path) -> None:
    run = open_run(atlas)
    explained = run["explained"]
    names = json.loads(explained.attrs["rules"])
    older = [name for name in names if name != STAND_IN]
    explained.attrs["rules"] = json.dumps(older)
    known = [AttentionRule(name, "rest", lambda read: read.even(read.opening)) for name in names]
    made = atlas_rules(with_explained(run, explained)).rules(known)
    assert [rule.name for rule in made] == [*older, STAND_IN]


def test_a_run_without_rules_is_refused(atlas: Path, tmp_path: Path) -> None:
    run = open_run(atlas)
    tree = run.tree.copy()
    del tree["explained"]
    with pytest.raises(InputError, match="no results of explained; run atlas with it"):
        atlas_rules(Run(tree, run.manifest, run.path))
    explained = run["explained"]
    explained["rest"] = xr.full_like(explained["rest"], -1)
    with pytest.raises(InputError, match="chose no rules: it read too few inputs"):
        atlas_rules(with_explained(run, explained))
    with pytest.raises(InputError, match="nothing says what these results were computed from"):
        atlas_rules(Run(run.tree, {}, run.path))
    explained = run["explained"]
    names = json.loads(explained.attrs["rules"])
    explained.attrs["rules"] = json.dumps(["of a plug-in", *names[1:]])
    with pytest.raises(InputError, match="the rule 'of a plug-in', which no question brings"):
        replay(with_explained(run, explained), corpus=hs.demo_corpus(), **DEMO)


def test_a_folder_is_a_run_or_a_model(atlas: Path) -> None:
    assert model_or_run(str(atlas)) == str(atlas)
    assert model_or_run(str(atlas.parent / "model")) == str(atlas.parent / "model")
    with pytest.raises(ModelError, match=r"has no config\.json"):
        model_or_run(str(atlas.parent))


def test_a_run_explains_one_head(atlas: Path) -> None:
    run = open_run(atlas)
    one = run.explain("L2H3")
    assert json.dumps(one) == json.dumps(run.explain((1, 2)))
    assert {name: one[name] for name in ("rest", "rules")} == (
        hs.explain(run.tree, "L2H3")["heads"]["L2H3"]
    )
    data = run["explained"].isel(layer=1, head=2)
    assert one["gathering"]["value"] == float(data["gathering"].sel(prediction="rules"))
    assert one["by_content"]["ci_low"] == pytest.approx(float(data["beyond_ci_low"]), nan_ok=True)
    shares = [rule["value"] for rule in one["gathers"]]
    assert sum(shares) == pytest.approx(one["gathering"]["value"], abs=1e-6)
    with pytest.raises(InputError, match="wanted one of 2 × 4"):
        run.explain("L9H9")
