"""Does `headscope evolve` say what is born when, end rightly, and refuse what cannot be?"""

from __future__ import annotations

import json

import pytest

from cli.conftest import refused
from made_models import small_bert

SMALL = ("--demo", "--limit", 2, "--replicates", 3, "--linears", "stock", "--quiet")


@pytest.fixture
def training(tmp_path):
    """A Trainer's folder: two checkpoints, and one that is still being written."""
    for step in (10, 20, 30):
        place = small_bert(tmp_path / f"out/checkpoint-{step}", seed=step)
        if step != 30:
            (place / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return tmp_path / "out"


def test_it_follows_a_trainers_folder_and_names_what_it_leaves_out(headscope, training):
    done = headscope("evolve", "out", *SMALL, "-o", "run", "--no-report")
    assert done.code == 0, done.err
    assert "2 layers × 4 heads, 2 steps, 10 to 20" in done.out
    assert "note: out/checkpoint-30 is left out: it is half written" in done.out
    assert "results: run/atlas.nc" in done.out
    (training / "checkpoint-30" / "trainer_state.json").write_text('{"global_step": 30}')
    again = headscope("evolve", "out", *SMALL, "-o", "run", "--json")
    assert again.code == 0, again.err
    summary = json.loads(again.out)
    assert summary["steps"] == [10, 20, 30]
    assert summary["measures"][0] == "surface.attention.previous"
    assert all(one["born_after"] in (None, 10, 20) for one in summary["labels"])
    assert headscope("status", "run").out.startswith("finished")
    checked = headscope("doctor", "run")
    assert checked.code == 0, checked.out
    assert headscope("report", "run").code == 0
    collected = headscope("evolve", "run", "--json", "--follow", "surface.attention.next")
    assert json.loads(collected.out)["measures"] == ["surface.attention.next"]


def test_what_cannot_be_followed_is_refused_in_words(headscope, training, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(headscope("evolve", "empty", "-o", "run"), "holds no checkpoint (found nothing)")
    refused(headscope("evolve", "missing@main", "-o", "run"), "after which step it was saved")
    small_bert(tmp_path / "out/checkpoint-40", layers=3)
    (tmp_path / "out/checkpoint-40/trainer_state.json").write_text("{}")
    done = headscope("evolve", "out", *SMALL, "-o", "run")
    refused(done, "has 3 layers × 4 heads", "wanted checkpoints of one training")
    assert not (tmp_path / "run").exists()
