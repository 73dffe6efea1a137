"""Does `headscope trial` say how many labels were confirmed, and write the run again?"""

from __future__ import annotations

import json


def test_a_page_says_which_labels_were_confirmed(headscope, tmp_path):
    few = ("--limit", "8", "--linears", "stock", "--replicates", "20")
    done = headscope(
        "atlas",
        "demo",
        "--demo",
        "--analyses",
        "surface",
        "--control",
        "none",
        *few,
        "--no-report",
        "-o",
        "run",
    )
    assert done.code == 0, done.err
    asks = ("trial", "run", "--demo", *few, "--inputs", "8", "--heads", "L1H3,L2H9", "-o", "tried")
    done = headscope(*asks)
    assert done.code == 0, done.err
    assert "labels were tried: " in done.out
    assert "They were tried on texts that the labels were chosen on." in done.out
    page = (tmp_path / "tried/report.html").read_text("utf-8")
    assert "by trial" in page
    assert (tmp_path / "tried/tables/trial_labels.csv").is_file()
    again = headscope(*asks, "--json", "--no-report")
    assert again.code == 0, again.err
    summary = json.loads(again.out)
    assert sum(summary["verdicts"].values()) == 2
    done = headscope("trial", "tried", "--demo", "--heads", "L1H1", "-o", "other")
    assert done.code == 2
    assert "found no label of the heads" in done.err
