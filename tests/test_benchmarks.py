"""Do the benchmark's pipelines run, and do the papers' own ways give headscope's numbers?"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from benchmarks import (
    atlas,
    circuit_worker,
    circuits,
    control,
    explanations,
    flow,
    language,
    limits,
    memory,
    opening,
    papers,
    planning,
    scale,
    views,
)
from benchmarks.inputs import bert, fixed, treebank, twin
from benchmarks.pipelines import EVERYTHING, Streamed, bare, bare_padded, fused_gelu
from benchmarks.timing import Row, interleave, table

from headscope import demo_corpus
from headscope.analyses.surface.measure import TARGETS
from headscope.corpus import TextCorpus
from headscope.model.batch import CATEGORIES
from headscope.model.checkpoint import quietly
from headscope.model.linears import linears

TINY = {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 48}
TINY |= {"intermediate_size": 64}
LIKE_CLARK = {
    **EVERYTHING,
    "entropy": {"smoothing": papers.EPSILON},
    "divergence": {"smoothing": papers.SMOOTHING, "reduction": "sum", "queries": "all"},
}


@pytest.fixture(scope="module")
def network():
    return bert(**TINY)


@pytest.fixture(scope="module")
def eager(network):
    other = twin(network, "eager")
    other.config.output_attentions = True
    return other


@pytest.fixture(scope="module")
def inputs():
    return treebank(9, budget=150)  # three batches with padding


@pytest.fixture(scope="module")
def ours(network, inputs):
    return {name: a.result() for name, a in Streamed(network, inputs, LIKE_CLARK)().items()}


# --- the papers' own ways agree with headscope's ------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-6), (np.float16, 2e-4)])
def test_extracting_to_disk_and_averaging_gives_our_surface_and_entropy(
    eager, inputs, ours, tmp_path, dtype, tolerance
):
    papers.extract(eager, inputs, tmp_path / "maps", dtype=dtype)
    theirs = papers.average(tmp_path / "maps")
    attention = ours["surface"]["attention"]
    for target in set(TARGETS) - {"first"}:
        np.testing.assert_allclose(attention.sel(target=target), theirs[target], atol=tolerance)
    entropy = ours["entropy"]["entropy"]
    np.testing.assert_allclose(entropy.sel(query="all"), theirs["entropy"], atol=10 * tolerance)
    np.testing.assert_allclose(entropy.sel(query="cls"), theirs["entropy_cls"], atol=10 * tolerance)


@pytest.mark.parametrize(
    "quantity", ["attention", "value_norm", "weighted_norm", "layer_weighted_norm"]
)
def test_norms_through_the_full_tensor_are_our_norms(eager, inputs, ours, quantity):
    theirs = papers.norms(eager, inputs)[quantity]
    assert theirs.shape[-1] == len(CATEGORIES)
    np.testing.assert_allclose(ours["norms"][quantity], theirs, rtol=2e-5, atol=1e-6)


def test_the_numpy_loop_over_pairs_of_heads_gives_our_divergences(eager, inputs, ours):
    alone = inputs.first(len(inputs.examples))
    theirs = papers.divergences(papers.maps_of(eager, alone))
    assert theirs.max() > 0.5
    np.testing.assert_allclose(ours["divergence"]["js"], theirs, rtol=2e-5, atol=2e-4)


# --- the pipelines run, and compute the same thing ----------------------------------------------


def test_the_fastest_forward_passes_compute_what_the_stock_one_does(network, inputs):
    batch = inputs.batch(inputs.rows[0])
    call = {"input_ids": batch.input_ids, "attention_mask": batch.mask.long()}
    fused = twin(network, "sdpa")
    with torch.inference_mode():
        stock = network(**call)[0]
        with fused_gelu(fused), linears(fused, "onednn"):
            packed = fused(**call)[0]
        again = fused(**call)[0]
    torch.testing.assert_close(packed, stock, atol=1e-5, rtol=0)
    torch.testing.assert_close(again, stock, atol=1e-6, rtol=0)


def test_bare_passes_run_on_sorted_and_on_padded_batches(network, inputs):
    bare(network, inputs)
    bare_padded(network, inputs)


def test_a_treebank_mix_has_the_lengths_it_says():
    lengths = [len(e) for e in treebank(2000).examples]
    assert (min(lengths), max(lengths)) == (8, 60)
    assert np.mean(lengths) == pytest.approx(26, abs=0.5)


def test_the_command_measures_every_pipeline_and_keeps_what_it_found(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(atlas, "bert", lambda: bert(**TINY))
    monkeypatch.setattr(atlas, "TREEBANK_PER_FIXED", 4)
    file = tmp_path / "found.json"
    atlas.main(["--rounds", "1", "--threads", "1", "--examples", "2", "--json", str(file)])
    printed = capsys.readouterr().out
    found = json.loads(file.read_text())
    assert {"conditions", fixed(1).name, treebank(1).name} == set(found)
    for name in (fixed(1).name, treebank(1).name):
        pipelines = [row["pipeline"] for row in found[name]]
        assert {"A", "B", "surface + entropy + norms"} <= set(pipelines)
        assert sum(p.startswith("papers") for p in pipelines) == 4
        assert all(f"| {p} |" in printed for p in pipelines)


def test_ratios_are_formed_within_a_round_and_per_token():
    slow, fast = Row("A", lambda: None, 10), Row("B", lambda: None, 10, {"A": 0.5})
    part = Row("C", lambda: None, 5, {"A": 0.5})
    slow.seconds, fast.seconds, part.seconds = [4.0, 8.0, 2.0], [2.0, 4.0, 1.0], [2.0]
    assert fast.ratios(slow) == [0.5, 0.5, 0.5]
    assert part.ratios(slow) == [1.0]
    text = table([slow, fast, part])
    assert "| B | 0.50 | 1.00 (1.00–1.00) | 5 | PASS (≤ 0.50 × A) |" in text
    assert "| C | 1.00 | 2.00 (2.00–2.00) | 2 | miss (≤ 0.50 × A) |" in text


def test_every_second_round_runs_backwards():
    order = []
    rows = [Row(name, lambda n=name: order.append(n), 1) for name in "AB"]
    rows.append(Row("C", lambda: order.append("C"), 1, rounds=1))
    interleave(rows, rounds=2, clock="wall")
    assert "".join(order) == "ABC" + "ABC" + "BA"


MEASURE_PEAK = """
import sys
from pathlib import Path
from benchmarks import memory
print(*memory.peak(Path.cwd(), 3, threads=1, kind=sys.argv[1]))
"""


@pytest.mark.parametrize(("kind", "mark"), [("text", "\n\n"), ("treebank", "# newdoc\n")])
def test_peak_memory_is_that_of_the_command_line(tmp_path, kind, mark):
    """Measured by a small process: a child's peak starts with what its parent held."""
    (tmp_path / "headscope.py").write_text("room = b'x' * (300 << 20)\n")
    path = os.pathsep.join([str(tmp_path), str(Path(memory.__file__).parents[1])])
    command = [sys.executable, "-c", MEASURE_PEAK, kind]
    said = subprocess.check_output(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
    peak, seconds = said.split()
    assert 300 << 20 < int(peak) < 600 << 20
    assert float(seconds) > 0
    assert (tmp_path / f"3.{kind}").read_text().count(mark) == 3


MEASURE_CONTROL = """
from pathlib import Path
from benchmarks import control
from benchmarks.timing import interleave
peaks = {}
both = control.rows(Path.cwd(), ["demo"], peaks)
interleave(both, rounds=1, clock="cpu")
print(*both[1].ratios(both[0]), *peaks.values())
"""
WORKS = """
import sys, time
if sys.argv[sys.argv.index("--control") + 1] == "random":
    room = b"x" * (600 << 20)
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
"""


def test_the_cost_of_a_control_is_that_of_the_command_line(tmp_path):
    """A command that computes and holds more with a control than without one."""
    (tmp_path / "headscope.py").write_text(WORKS)
    path = os.pathsep.join([str(tmp_path), str(Path(memory.__file__).parents[1])])
    command, more = [sys.executable, "-c", MEASURE_CONTROL], os.environ | {"PYTHONPATH": path}
    ratio, without, beside = subprocess.check_output(command, cwd=tmp_path, env=more).split()
    assert float(ratio) > 1.5
    assert int(beside) - int(without) > 300 << 20  # a child starts with the peak of its parent


def test_texts_of_the_control_have_the_length_that_they_are_said_to_have(tmp_path):
    control.write_text(tmp_path / "text", 3, 800)
    documents = (tmp_path / "text").read_text().split("\n\n")
    assert [len(one) + 1 for one in documents] == [800] * 3  # a token each byte, and the first


def test_the_linguistic_pipelines_run_on_annotated_inputs(network, monkeypatch):
    """Every word of the random treebank is asked for, by every analysis that is timed."""
    monkeypatch.setattr(language, "bert", lambda: network)
    some = language.annotated(treebank(9, budget=150))
    words = sum(len(e.words) for e in some.examples)
    with ExitStack() as stack:
        rows = {row.name: row for row in language.pipelines(some, stack)}
        found = rows["… + dependency"].run()["dependency"].result()
    assert int(found["count"].sel(relation="all")) == words > 100
    assert 0.02 < np.mean([(np.diff(e.word_index[1:]) == 0).mean() for e in some.examples]) < 0.2


def test_the_pipelines_of_flow_follow_every_method(network, monkeypatch):
    monkeypatch.setattr(flow, "bert", lambda: network)
    some = treebank(9, budget=150)
    with ExitStack() as stack:
        rows = {row.name: row for row in flow.pipelines(some, some.first(flow.FEW), stack)}
        for name in ("alti", f"value_zeroing (on {flow.FEW} inputs, scaled)"):
            found = rows[name].run()["flow"].result()
            np.testing.assert_allclose(found.share.sum("target"), 1, rtol=1e-5)
    assert flow.METHODS[0] in rows


def test_rules_are_timed_beside_the_atlas_without_them(tiny_place):
    """The rows differ by rules alone, and replay of an atlas chooses none."""
    few = {"inputs": 6, "choosing": 6, "replicates": 3, "limit": 2}
    some = ["explained", "surface"]
    made = explanations.pipelines(str(tiny_place), demo_corpus(), analyses=some, **few)
    rows = {row.name: row.run for row in made}
    of_atlas = explanations.ATLAS, "… + explained"
    without, more = (rows[name].keywords["analyses"] for name in of_atlas)
    assert set(more) - set(without) == {"explained"}
    replayed = rows["replay of an atlas, rules at 25 % alone"]()["replay"]
    assert replayed.attrs["rules_of"] == "atlas"
    assert replayed.sizes["replacement"] == replayed.sizes["share"] == 1


# --- views --------------------------------------------------------------------------------------


@pytest.fixture
def bertviz(monkeypatch):
    """A stand-in that keeps what it is given."""
    given = []

    def view(attention, tokens, *, sentence_b_start, html_action):
        given.append((attention, tokens, sentence_b_start, html_action))
        return SimpleNamespace(data="drawn\n")

    module = ModuleType("bertviz")
    module.__spec__ = ModuleSpec("bertviz", None)
    module.head_view = module.model_view = view
    monkeypatch.setitem(sys.modules, "bertviz", module)
    return given


def test_views_are_built_beside_bertviz_s_from_the_same_input(
    monkeypatch, tmp_path, capsys, bertviz
):
    monkeypatch.setattr(opening, "CHROMIUM", None)
    file = tmp_path / "found.json"
    views.main(["--rounds", "1", "--tokens", "20", "--json", str(file)])
    printed = capsys.readouterr().out
    found = json.loads(file.read_text())
    assert list(found) == [
        f"a {kind} tokens, 6 × 12 heads" for kind in ("short pair of 15", "text of 20")
    ]
    for records in found.values():
        ours, head, _ = records
        assert (head["page"], head["bytes"]) == ("BertViz, head view", 6)
        assert f"| {ours['bytes'] / 1e6:.2f} MB | no chromium |" in printed
        assert f"{'PASS' if ours['bytes'] <= 1_000_000 else 'miss'} (file ≤ 1 MB)" in printed
    for maps, tokens, start, action in bertviz:
        assert (len(maps), maps[0].shape) == (6, (1, 12, len(tokens), len(tokens)))
        torch.testing.assert_close(maps[5].sum(-1), torch.ones(1, 12, len(tokens)))
        assert (tokens[0], tokens[-1], action) == ("[CLS]", "[SEP]", "return")
        assert start == (tokens.index("[SEP]") + 1 if tokens.count("[SEP]") == 2 else None)
    assert {start is None for _, _, start, _ in bertviz} == {True, False}


def test_without_bertviz_the_views_are_measured_alone_and_it_is_said(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "bertviz", None)
    monkeypatch.setattr(opening, "CHROMIUM", None)
    views.main(["--rounds", "1", "--tokens"])
    printed = capsys.readouterr().out
    assert "bertviz: not installed" in printed
    assert "| BertViz" not in printed


def test_a_page_that_needs_the_network_stays_blank_and_ours_answers_every_token(
    browser, demo, tmp_path, monkeypatch
):
    monkeypatch.setattr(opening, "HOVERS", 5)
    file = tmp_path / "ours.html"
    views.text_of(demo, 6).headscope(file)
    seen = opening.opening(browser, file, ours=True, rounds=2)
    assert (seen.trouble, seen.asked, seen.blank) == ("", set(), False)
    assert len(seen.painted) == len(seen.drawn) == 2
    assert len(seen.hover) == len(seen.hover_all) == 5
    assert min(seen.painted + seen.drawn + seen.hover + seen.hover_all) > 0
    assert max(seen.painted + seen.drawn + seen.hover + seen.hover_all) < 60_000  # ms
    other = tmp_path / "other.html"
    script = "https://example.org/drawing.js"
    other.write_text(f"<script src='{script}'></script>words<script>draw()</script>")
    seen = opening.opening(browser, other, ours=False, rounds=1)
    assert (seen.trouble, seen.asked, seen.blank) == ("", {script}, True)


@pytest.mark.parametrize("minutes", [30.0, 0.0])
def test_simulated_processes_end_in_one_result_and_a_run_that_is_stopped_says_so(tmp_path, minutes):
    shards = scale.IN_A_PARTITION + 10
    found = scale.simulate(tmp_path / "run", 3, shards, 60.0, 4, minutes=minutes)
    lines = list(scale.told(found))
    if not minutes:
        assert lines[0] == f"stopped after 1 of {shards} shards: what follows is of these"
        return
    assert found["ends"] == {"wrote the results": 1, "WrittenElsewhereError": 2}
    assert found["computed"] >= shards
    assert found["simulated"] > found["ideal"] > 0.9 * shards * 60 / 3
    assert {"plan", "look", "merge", "lease", "write"} <= set(found["spent"])
    assert found["of_cpu"].keys() == found["spent"].keys()
    assert 0 < found["most"]["states"] <= shards


def test_planning_is_timed_beside_computing(tmp_path):
    told = planning.speeds(tmp_path, 12, **TINY)
    assert set(told) == {"planned", "everything", "nothing"}
    assert told["everything"] < told["nothing"]
    planning.write_documents(tmp_path / "short.txt", 30)
    documents = list(TextCorpus(tmp_path / "short.txt"))
    assert len(documents) == 30
    assert all(4 <= len(d.passages[0].text.split()) + 1 <= 21 for d in documents)


def test_the_worker_scores_induction_as_the_maps_of_the_network_say(tmp_path):
    """Reference: the maps that transformers returns."""
    shape = {"n_layer": 2, "n_head": 4, "n_embd": 32, "vocab_size": 50, "n_positions": 24}
    with quietly():
        circuits.decoder(**shape).save_pretrained(tmp_path)
        half = 1 + np.stack([np.random.default_rng(at).permutation(49)[:5] for at in range(12)])
        ids = np.concatenate([np.zeros((12, 1), np.int64), half, half], 1)
        found = circuit_worker.headscope(str(tmp_path), ids)()
        eager = circuit_worker.network(str(tmp_path), "eager")
    maps = eager(input_ids=torch.from_numpy(ids), output_attentions=True).attentions
    places = np.arange(6, 11)
    wanted = [layer[:, :, places, places - 4].mean((0, 2)).detach() for layer in maps]
    np.testing.assert_allclose(found, np.stack(wanted), atol=1e-6)


def test_one_pass_per_head_and_all_heads_together_give_the_same():
    network = circuits.decoder(n_layer=2, n_head=4, n_embd=32, vocab_size=50, n_positions=20)
    timed = circuits.rows(network, circuits.pairs(3, words=50))
    plain, found = (row.run() for row in timed)
    units = np.linspace(0, 7, circuits.MEASURED).astype(int)
    after = found["effect"].reshape(3, -1)[:, units] + found["into"][:, None]
    np.testing.assert_allclose(after.mean(0), plain, atol=1e-5)
    assert np.ptp(plain) > 1e-5


def a_line(key, status, ours=0.5, ends=(None, None), unit="%", claim="a share"):
    low, high = ends
    return {
        "key": key,
        "status": status,
        "beyond_untrained": "",
        "unit": unit,
        "claim": claim,
        "ours": ours,
        "ci_low": low,
        "ci_high": high,
    }


def test_a_verdict_that_becomes_its_contrary_is_seen_and_one_that_opens_is_not():
    few = [a_line("one", "holds"), a_line("two", "cannot tell"), a_line("three", "holds")]
    many = [a_line("one", "does not hold"), a_line("two", "holds"), a_line("three", "cannot tell")]
    assert limits.flips({"20": few, "all": many}, "status") == ["one: 20 holds, all does not hold"]


@pytest.mark.parametrize(
    ("ends", "more", "fault"),
    [
        ((40.1, 111.5), {}, "reaches beyond 0 to 100"),
        ((40.1, 99.5), {}, ""),
        ((90.0, 99.5), {}, "leaves out its number"),
        ((-3.0, 99.0), {"claim": "its change"}, ""),
        ((-3.0, 99.0), {"claim": "rank correlation"}, "reaches beyond -1 to 1"),
        ((None, None), {}, ""),
    ],
)
def test_an_interval_lies_where_its_number_can_lie(ends, more, fault):
    assert limits.odd(a_line("key", "holds", 86.5, ends, **more)) == fault
