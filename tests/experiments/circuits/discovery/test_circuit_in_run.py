"""Does a run with prompts hold their circuit, show it, and export it?"""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import headscope as hs
from experiments.circuits.decoders import decoder, pairs
from experiments.circuits.discovery.planted import induction_prompts, planted
from headscope.errors import InputError
from headscope.experiments.circuits.discovery.discover import find_circuit
from headscope.experiments.circuits.discovery.importances import export_importances
from headscope.experiments.circuits.discovery.node_sets import areas
from headscope.experiments.circuits.prompts import Prompt
from headscope.report.build import first_words

QUICK = {"length": 8, "sequences": 10, "control": "none", "composition": False, "haystack": 0}
COUPLES = 16


def table(prompts: list[Prompt], path) -> str:
    with path.open("w", newline="") as file:
        rows = csv.writer(file, delimiter="\t")
        rows.writerow(["prompt", "answer", "wrong", "corrupted", "item"])
        for one in prompts:
            rows.writerow([one.text, one.answer, one.wrong, one.corrupted, one.item])
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place, model = tmp_path_factory.mktemp("circuit"), planted("llama", 0).model
    path = table(induction_prompts(model, couples=COUPLES), place / "induction.tsv")
    more = {"prompts": path, "edges": True, "views": 0, "successors": False}
    return hs.circuits(model, output=place / "run", **QUICK, **more)


def test_a_run_has_what_the_function_gives(run):
    model = planted("llama", 0).model
    own = find_circuit(model, induction_prompts(model, couples=COUPLES), edges=True)
    for name in ("score", "member", "circuit_faithfulness", "edge_score", "edge_cpr"):
        np.testing.assert_allclose(run["discovery"][name], own[name], atol=1e-5)


def test_areas_are_of_the_first_by_score_and_of_the_largest(run):
    shown = run["discovery"]
    for curves, names in (("faithfulness", "cpr cmd"), ("edge_faithfulness", "edge_cpr edge_cmd")):
        own, (cpr, cmd) = shown[curves].transpose("share", ...), names.split()
        np.testing.assert_allclose(shown[cpr], areas(own.sel(order="score").values)[0])
        np.testing.assert_allclose(shown[cmd], areas(own.sel(order="size").values)[1])


def test_the_report_shows_the_circuit_and_its_edges(run):
    page = run.report().read_text("utf-8")
    assert "Which heads together are the circuit, and how faithful is it?" in page
    assert page.count('id="circuit-edges-title"') == 1
    circuit = "2 of 12 heads and 0 of 2 feed-forward layers are a circuit"
    assert page.count(circuit) == 1
    assert first_words(run.tree).startswith(circuit)
    for name in ("circuit", "circuit_edges"):
        assert (run.path / "figures" / f"{name}.png").stat().st_size > 10_000


def test_scores_are_exported_in_logits_by_the_names_of_the_benchmark(run):
    read = json.loads(export_importances(run).read_text("utf-8"))
    shown = run["discovery"]
    gap = float(shown["gap"])
    assert read["cfg"] == {
        "n_layers": 2,
        "n_heads": 6,
        "parallel_attn_mlp": False,
        "d_model": shown.attrs["width"],
    }
    assert list(read["nodes"])[:2] + list(read["nodes"])[-2:] == ["input", "a0.h0", "m1", "logits"]
    inside = {name for name, node in read["nodes"].items() if node["in_graph"]}
    members = shown["node"].values[shown["member"].values == 1]
    assert inside == {*members.tolist(), "logits"}
    for name, node in list(read["nodes"].items())[:-1]:
        assert node["score"] == pytest.approx(gap * float(shown["score"].sel(node=name)), abs=1e-9)
        of_node = [e["score"] for edge, e in read["edges"].items() if edge.startswith(f"{name}->")]
        assert sum(of_node) == pytest.approx(node["score"], abs=1e-3)
    # Every node before a reader: 1 to the first layer, 7 to its MLP, 8 to the second layer …
    assert len(read["edges"]) == 18 * 1 + 7 + 18 * 8 + 14 + 15
    assert "a0.h3->a1.h2<k>" in read["edges"]


def test_a_run_without_a_circuit_exports_none(tmp_path):
    made = hs.circuits(decoder("GPT-2"), output=tmp_path / "run", **QUICK)
    with pytest.raises(InputError, match="no circuit"):
        export_importances(made)


def test_layers_that_read_the_same_stream_have_scores_of_edges_and_no_curve():
    shown = find_circuit(decoder("GPT-NeoX"), pairs(*[6] * 12, seed=1), edges=True)
    assert np.isfinite(shown["edge_score"]).any()
    assert "edge_cpr" not in shown
    beside = shown["edge_score"].sel(node="a0.h0", reader="m0")
    assert np.isnan(beside)
