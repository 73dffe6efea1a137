"""Do lines read the right numbers off runs?"""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.claims.verdict import Outcome
from headscope.core.intervals import estimate
from headscope.papers import checkpoints
from headscope.papers.claim_engine import judge
from headscope.papers.page import ours_text
from headscope.papers.paper_runs import in_memory, recorded
from headscope.papers.quantities import PaperRuns
from headscope.papers.run_paper import papers
from headscope.run.store import Run
from papers.zoo.trees import model_run, surface


@pytest.fixture(scope="module")
def whole(demo):
    """All analyses of the demo: the papers' lines are of a model that was trained."""
    execution = hs.Execution(linears="stock", threads=1)
    return hs.atlas(demo, hs.demo_corpus(), limit=6, replicates=20, execution=execution)


@pytest.fixture(scope="module")
def results(whole):
    """One run of all analyses stands in for every part of an atlas."""
    parts = ("surface", "norms", "dependency", "coreference", "words")
    return PaperRuns(
        dict.fromkeys(parts, whole), own=False, absent={}, others={"treebank": "another treebank"}
    )


def told(paper: str, key: str, results: PaperRuns):
    line = next(line for line in papers()[paper].claims if line.key == key)
    return judge(line, results)


def test_no_line_of_any_paper_fails_on_a_run_of_all_analyses(results):
    judged = [judge(line, results) for paper in papers().values() for line in paper.claims]
    assert not any(j.failed for j in judged)
    assert sum(j.measured is not None for j in judged) > 100


def test_a_claims_interval_knows_how_much_each_document_weighs(demo):
    texts = ["A cat sat.", "Dogs bark at night. " * 60, "He left.", "Why not?", "So be it."]
    settings = hs.Settings(analyses=("entropy",), max_length=16)
    corpus = hs.corpus.MemoryCorpus([*texts, "It rained.", "The end."])
    execution = hs.Execution(linears="stock", threads=1, keep_draws=True)
    made = hs.atlas(demo, corpus, settings=settings, execution=execution)
    run = PaperRuns({"surface": made}).run("surface")
    draws = run.entropies("all").mean((1, 2))
    inputs = made["entropy"]["entropy_sizes"].values
    assert (inputs[0] - inputs[1:]).tolist() == [
        1,
        made.manifest["counts"]["examples"] - 6,
        *[1] * 5,
    ]
    wanted, without = estimate(draws, sizes=inputs), estimate(draws)
    assert (run.measured(draws).low, run.measured(draws).high) == (wanted.low, wanted.high)
    assert wanted.high - wanted.low > 1.2 * (without.high - without.low)


def test_heads_on_the_previous_token_are_counted(results, whole):
    shares = whole["surface"]["attention"].sel(target="previous")
    judged = told("clark2019", "previous", results)
    assert judged.measured.value == int((shares > 0.5).sum())


def test_the_mean_of_layers_6_to_10_is_that_of_the_same_depth():
    share = np.array([0.1, 0.2, 0.4, 0.5, 0.9, 0.3])
    run = model_run(layers=6, surface=surface(layers=6, sep=share))
    judged = told("clark2019", "sep-middle", PaperRuns({"surface": run}))
    assert judged.measured.value == pytest.approx(0.6)  # of layers 3 to 5: (6 to 10 - 1) · 5/11 + 1
    assert judged.measured.detail == "layers 3 to 5"


def test_a_relation_goes_by_its_name_in_the_treebank_and_says_so(results, whole):
    found = whole["dependency"]
    at = found["relation"].values.tolist().index("obj")
    judged = told("clark2019", "table1-dobj", results)
    assert judged.measured.value == pytest.approx(float(found["best_accuracy"][at]))
    assert "as obj" in judged.measured.detail
    assert judged.measured.elsewhere == "another treebank"
    assert told("clark2019", "table1-prep", results).outcome is Outcome.NOT_ASKED


def test_the_baseline_is_the_best_of_the_papers_offsets_only(results, whole):
    found = whole["dependency"]
    at = found["relation"].values.tolist().index("det")
    offsets = found["offset_accuracy"].isel(relation=at).sel(offset=[-3, -2, -1, 1, 2])
    judged = told("clark2019", "table1-det-offset", results)
    assert judged.measured.value == pytest.approx(float(offsets.max()))


def test_the_other_tokens_of_a_layer_are_the_mean_over_its_heads(results, whole):
    norms = whole["norms"]["weighted_norm"].sel(category="other", layer=0)
    assert told("kobayashi2020", "figure3b-other-1", results).measured.value == pytest.approx(
        float(norms.mean())
    )


def test_without_ranks_of_its_own_tokens_frequency_is_not_run(results):
    judged = told("kobayashi2020", "frequency-norm", results)
    assert judged.outcome is Outcome.NOT_ASKED
    assert "rank_count_ids.txt" in judged.verdict.needs


def ranked(whole):
    """A run whose ranks came from a file."""
    spec = {**whole.manifest["spec"], "frequency": "a file’s sha256"}
    return Run(whole.tree, {**whole.manifest, "spec": spec})


def test_the_frequency_of_what_is_mixed_is_told_where_ranks_are_a_files(results, whole):
    assert told("kobayashi2020", "mixing-rank-res", results).outcome is Outcome.NOT_ASKED
    found = PaperRuns({"norms": ranked(whole)}, own=False, absent={})
    judged = told("kobayashi2020", "mixing-rank-res", found)
    rho = whole["mixing"]["spearman_frequency"].sel(variant="attnres_n")
    assert judged.measured.value == pytest.approx(float(rho))
    assert judged.measured.low <= judged.measured.value <= judged.measured.high


def test_the_largest_norm_is_that_of_the_head_that_varies_most(results, whole):
    norms = whole["norms"]
    at = norms["value_norm_cv"].argmax(["layer", "head"])
    largest = told("kobayashi2020", "table1-head-2-4-largest", results).measured
    smallest = told("kobayashi2020", "table1-head-2-4-smallest", results).measured
    assert largest.value == float(norms["value_norm_max"].isel(at))
    assert 0 < smallest.value < float(norms["value_norm_mean"].isel(at)) < largest.value


def test_words_of_a_relation_are_counted_by_its_name_in_the_treebank(results, whole):
    found = whole["dependency"]
    at = found["relation"].values.tolist().index("obj")
    judged = told("clark2019", "treebank-dobj", results)
    assert judged.measured.value == float(found["count"][at])
    assert judged.measured.detail == "as obj"
    assert told("clark2019", "treebank-prep", results).outcome is Outcome.NOT_ASKED


def gradients(rng, layers):
    """A run of [SEP]'s gradients that halve from layer to layer, while attention doubles."""
    curve = 0.5 ** np.arange(layers)
    spread = 1 + 0.3 * rng.standard_normal((21, layers)) * np.array([0, *[1] * 20])[:, None]
    parts = {"layer_magnitude": curve * spread, "layer_attention": spread / curve}
    found = xr.Dataset()
    for name, draws in parts.items():
        found[name] = (("layer", "category"), draws[0][:, None])
        found[name + "_draws"] = (("replicate", "layer", "category"), draws[..., None])
    run = in_memory("gradients")
    run.tree["gradients"] = xr.DataTree(found.assign_coords(category=["sep"]))
    run.tree.attrs |= {"documents": 20}
    return PaperRuns({"gradients": run}, own=False, absent={})


def test_gradients_of_the_separator_have_an_interval_over_documents():
    found = gradients(np.random.default_rng(0), 12)
    fall = told("clark2019", "gradients-fall", found).measured
    curve = 0.5 ** np.arange(12)
    assert fall.value == pytest.approx(curve[4:].mean() / curve[:4].mean(), rel=0.05)
    assert fall.low < fall.value < fall.high < 0.5
    mirror = told("clark2019", "gradients-mirror", found)
    assert (mirror.measured.value, mirror.outcome) == (-1, Outcome.HOLDS)
    few = told("clark2019", "gradients-mirror", gradients(np.random.default_rng(0), 2))
    assert few.verdict.needs == "needs a model of at least 4 layers for a rank correlation"


def scores(before: float, after: float) -> dict[str, dict[str, float]]:
    return {
        "before": {"accuracy": before, "ci_low": before - 0.02, "ci_high": before + 0.02},
        "after": {"accuracy": after, "ci_low": after - 0.02, "ci_high": after + 0.02},
    }


def test_a_correlation_is_told_in_hundredths_and_is_no_share(tmp_path):
    """ "Pearson’s r × 100: 1.3 %" stood beside the paper's 33.1."""
    row = {
        when: {"pearson": r, "ci_low": r - 0.02, "ci_high": r + 0.02}
        for when, r in (("before", 0.013), ("after", 0.82))
    }
    data = {"train": {"examples": 9}, "dev": {"examples": 70}}
    (tmp_path / "finetuned.json").write_text(
        json.dumps({"metrics": row, "data": data, "chance": 0.0})
    )
    runs = PaperRuns({"tuned:sts-b": recorded(tmp_path)}, own=True, absent={})
    one = told("kovaleva2019", "table1-sts-b-pearson-before", runs)
    assert one.claim.unit == ""
    assert ours_text(one) == ("1.3", "[−0.7, 3.3]")
    assert told("kovaleva2019", "table1-gain", runs).measured.value == pytest.approx(0.807)


def test_the_record_of_a_training_becomes_the_row_of_its_task(tmp_path):
    data = {"train": {"examples": 9}, "dev": {"examples": 7}}
    for name, metrics in (("rte", scores(0.5, 0.65)), ("scratch", scores(0.5, 0.53))):
        (tmp_path / name).mkdir()
        file = tmp_path / name / "finetuned.json"
        file.write_text(json.dumps({"metrics": metrics, "data": data, "chance": 0.53}))
    runs = {
        "tuned:rte": recorded(tmp_path / "rte"),
        "scratch:rte": recorded(tmp_path / "scratch"),
    }
    own = PaperRuns(runs, own=True, absent={})
    tuned = told("kovaleva2019", "table1-rte-accuracy-tuned", own)
    assert tuned.outcome is Outcome.HOLDS
    assert [one.text for one in tuned.reproduced] == ["64.6"]  # [63, 67] lies within five points
    assert tuned.measured.n == "7 examples, 9 learned from"
    assert told("kovaleva2019", "table1-rte-accuracy-scratch", own).outcome is Outcome.HOLDS
    gain = told("kovaleva2019", "table1-gain", own)
    assert gain.measured.value == pytest.approx(0.15)
    assert gain.outcome is Outcome.HOLDS
    assert gain.measured.elsewhere == "1 of 7 tasks"


def test_a_random_heads_absence_has_an_interval_over_examples():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 200)
    whole = np.where(rng.random(200) < 0.7, label, 1 - label)
    worse = np.where(rng.random((2, 3, 200)) < 0.3, 1 - label, whole)
    change = (worse == label).mean(-1) - (whole == label).mean()
    found = xr.Dataset(
        {
            "difference": (("layer", "head"), change),
            "prediction": (("layer", "head", "example"), worse),
            "baseline_prediction": ("example", whole),
            "label": ("example", label),
            "baseline": ((), (whole == label).mean()),
            "baseline_ci_low": ((), 0.6),
            "baseline_ci_high": ((), 0.8),
        }
    )
    run = in_memory("ablation")
    run.tree["ablation"] = xr.DataTree(found)
    run.tree.attrs |= {"documents": 200, "counted": "examples"}
    judged = told("kovaleva2019", "mean-head-rte", PaperRuns({"ablate:rte": run}, own=False))
    answer = judged.measured
    assert answer.value == pytest.approx(change.mean())
    assert answer.low < change.mean() < answer.high < 0
    assert judged.outcome is Outcome.FAILS


@pytest.mark.parametrize(
    ("low", "status"),
    [
        (0.01, Outcome.HOLDS),
        (-0.01, Outcome.CANNOT_TELL),
        (np.nan, Outcome.CANNOT_TELL),
    ],
)
def test_a_probe_is_held_against_another_by_their_paired_difference(low, status):
    """Their own intervals overlap; n is of the sentences that were scored."""
    names = ["distances_words", "attention_words"]
    gain = np.array([[0.0, -0.02], [0.02, 0.0]])
    found = xr.Dataset(
        {
            "uas": ("probe", [0.60, 0.62]),
            "uas_ci_low": ("probe", [0.55, 0.57]),
            "uas_ci_high": ("probe", [0.65, 0.67]),
            "difference": (("probe", "probe_other"), gain),
            "difference_ci_low": (("probe", "probe_other"), np.where(gain > 0, low, -1.0)),
            "difference_ci_high": (("probe", "probe_other"), gain + 1),
        },
        coords={"probe": names, "probe_other": names},
        attrs={"test_sentences": 1234},
    )
    run = Run(xr.DataTree.from_dict({"probes": found}), {})
    judged = told(
        "clark2019", "table3-attention_words", PaperRuns({"probes": run}, own=False, absent={})
    )
    assert judged.outcome is status
    assert judged.measured.n == "1,234 test sentences"


def tuned_runs(tmp_path, after: float, half: float):
    """The record of a checkpoint whose score is `after` ± `half`, where chance gives 0.53."""
    metrics = {
        when: {"accuracy": value, "ci_low": value - half, "ci_high": value + half}
        for when, value in (("before", 0.48), ("after", after))
    }
    sizes = {"train": {"examples": 40}, "dev": {"examples": 40}}
    record = {"metrics": metrics, "data": sizes, "chance": 0.53}
    (tmp_path / "finetuned.json").write_text(json.dumps(record))
    return {"tuned:rte": recorded(tmp_path), "compare:rte": in_memory("similarity")}


def test_nothing_is_concluded_from_a_checkpoint_at_chance(tmp_path):
    runs = PaperRuns(tuned_runs(tmp_path, 0.6, 0.15), own=True)
    for key in ("table1-rte-accuracy-tuned", "last-layers-rte"):
        judged = told("kovaleva2019", key, runs)
        assert judged.outcome is Outcome.NOT_ASKED
        assert judged.verdict.needs == (
            "the checkpoint for RTE is not shown to beat chance (0.60 against 0.53)"
        )
    before = told("kovaleva2019", "table1-rte-accuracy-before", runs)
    assert before.measured.value == 0.48  # of the model before any training


def test_a_checkpoint_that_beats_chance_is_asked(tmp_path):
    runs = PaperRuns(tuned_runs(tmp_path, 0.66, 0.05), own=True)
    assert told("kovaleva2019", "table1-rte-accuracy-tuned", runs).outcome is Outcome.HOLDS


def test_what_learned_from_a_part_says_nothing_of_what_learned_from_all(tmp_path):
    """A probe of 20 sentences lay below a rule that one of 200 surely beats."""
    found = tuned_runs(tmp_path, 0.66, 0.05)
    limited = PaperRuns(found, own=True, limit=40, learned={"rte": 40})
    judged = told("kovaleva2019", "table1-rte-accuracy-tuned", limited)
    assert judged.outcome is Outcome.CANNOT_TELL
    assert judged.measured.value == 0.66
    assert "learned from 40 examples only (--limit)" in judged.measured.detail
    before = told("kovaleva2019", "table1-rte-accuracy-before", limited)
    assert "only" not in before.measured.detail
    gain = told("kovaleva2019", "table1-gain", limited)
    assert gain.verdict.needs == "needs checkpoints that beat chance, of whole tasks"


@pytest.mark.parametrize("score", [(0.6, 0.55, 0.65), (0.2, 0.1, 0.3)])
def test_diagonal_maps_of_heads_of_subject_and_verb_have_an_interval(score, monkeypatch):
    """As if all errs in one direction: by hand, of two classes of three heads."""
    value, low, high = score
    heads = ("pattern", "layer", "head")
    ones = np.ones((2, 1, 3))
    whole = {"model_share": 0.2, "model_share_ci_low": 0.18, "model_share_ci_high": 0.22}
    patterns = xr.Dataset(
        {
            "share": (heads, value * ones),
            "share_ci_low": (heads, low * ones),
            "share_ci_high": (heads, high * ones),
            **{name: ("pattern", [end, end]) for name, end in whole.items()},
        },
        {"pattern": ["diagonal", "vertical_diagonal"]},
    )
    pairs = xr.Dataset(
        {"attention": (("pair", "layer", "head"), ones)},
        {"pair": ["subject_to_verb", "verb_to_subject"]},
    )
    tree = xr.DataTree.from_dict({"patterns": patterns, "pairs": pairs})
    tree.attrs |= {"documents": 9}
    judged = told("kovaleva2019", "pairs-diagonal", PaperRuns({"words": Run(tree, {})}))
    measured, ends = judged.measured, [min(2 * end, 1.0) for end in score]
    assert [measured.value, measured.low, measured.high] == pytest.approx(ends)
    # all heads have 0.40 [0.36, 0.44]
    assert judged.outcome is (Outcome.HOLDS if low > 0.22 else Outcome.CANNOT_TELL)


def changed_layers(change: float, first: float):
    """A comparison of four layers, the last two of which change by so much more."""
    found = xr.Dataset(
        {
            "last_are_first": ((), first),
            "layer_cosine": ("layer", [1.0, 1.0, 1 - change, 1 - change]),
            "last_minus_other": ((), change),
            "last_minus_other_ci_low": ((), 0.9 * change),
            "last_minus_other_ci_high": ((), 1.1 * change),
        }
    )
    return Run(xr.DataTree.from_dict({"similarity": found}), {})


@pytest.mark.parametrize(
    ("task", "change", "first", "wanted"),
    [
        ("rte", 0.2, 0.99, Outcome.HOLDS),
        ("rte", 0.2, 0.5, Outcome.CANNOT_TELL),
        ("rte", 0.2, 0.01, Outcome.FAILS),
        ("rte", 0.0, 0.99, Outcome.FAILS),  # nothing changed, so nothing changed most
        ("qqp", 0.2, 0.01, Outcome.HOLDS),
        ("qqp", 0.2, 0.5, Outcome.CANNOT_TELL),
    ],
)
def test_the_last_layers_change_most_only_in_nearly_all_corpora_and_if_they_change(
    task, change, first, wanted, monkeypatch
):
    monkeypatch.setattr(checkpoints, "at_chance", lambda *_: "")
    run = changed_layers(change, first)
    run.tree.attrs |= {"documents": 40}
    runs = PaperRuns({f"compare:{task}": run})
    assert told("kovaleva2019", f"last-layers-{task}", runs).outcome is wanted


def test_a_share_keeps_within_its_range_however_few_words_there_are():
    """The best offset found "80.0 % [−69.7, 165.4]" of five words, and 86.5 % [40.1, 111.5]."""
    draws = np.full((9, 1, 1), 0.8)
    draws[1:7, 0, 0] = 1.0, 1.0, 0.5, 0.75, 0.75, 0.75
    dims, names = ("draw", "offset", "relation"), {"offset": [1], "relation": ["det"]}
    found = {"offset_accuracy_draws": (dims, draws), "offset_accuracy": (dims[1:], draws[0])}
    found = xr.Dataset({**found, "count": ("relation", [5])}, names)
    run = model_run(dependency=found.reindex(offset=[-3, -2, -1, 1, 2]))
    runs = PaperRuns({"dependency": run}, own=False, absent={})
    measured = told("clark2019", "table1-det-offset", runs).measured
    assert 0 <= measured.low < 0.8 < measured.high <= 1
