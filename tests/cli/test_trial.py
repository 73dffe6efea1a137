"""Does `headscope trial` say how many labels were confirmed, and write the run again?"""

from __future__ import annotations

import json


def test_each_label_has_its_verdict_beside_it(headscope):
    few = ("--limit", "8", "--linears", "stock", "--replicates", "20", "--no-report")
    asks = ("--analyses", "surface", "--control", "none")
    done = headscope("atlas", "demo", "--demo", *asks, *few, "-o", "run")
    assert done.code == 0, done.err
    asks = ("trial", "run", "--demo", *few, "--inputs", "8", "--heads", "L1H3,L2H9", "-o", "tried")
    done = headscope(*asks)
    assert done.code == 0, done.err
    assert "2 of 2 labels were tried: " in done.out
    assert "They were tried on texts that the labels were chosen on." in done.out
    again = headscope(*asks, "--json")
    assert again.code == 0, again.err
    summary = json.loads(again.out)
    assert sum(summary["verdicts"].values()) == 2
    assert "confirmed" in headscope("head", "tried", "L1H3").out
    done = headscope("trial", "tried", "--demo", "--heads", "L1H1", "-o", "other")
    assert done.code == 2
    assert "found no label of the heads" in done.err
