"""Does `norms` say what heads really gather, and are its relations those of the raw pairs?

Spearman's correlations come from binned ranks: on the few thousand pairs here the bins cost up to
4e-3 (`tests/core/test_accumulators.py` has the error on larger samples, 3e-4).
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tokenizers.processors import TemplateProcessing

import headscope as hs
from analyses.running import RANK, blocks, flags, observe, planted, run
from headscope.analyses.norms.measure_relations import (
    BINS,
    COARSE_NORM,
    COARSE_WEIGHT,
    NORM,
    WEIGHT,
    Cancellation,
)
from headscope.corpus.document import Example
from headscope.model.batch import CATEGORIES, Batch
from headscope.model.instrument import AttentionCall
from headscope.model.kernels import count, histogram_cells
from headscope.model.model import Model
from headscope.model.vocabulary import Vocabulary
from headscope.run.analysis import Scope
from headscope.run.contract_bench import (
    COMMA,
    HEADS,
    LAYERS,
    STOP,
    TOKENS,
    VOCABULARY,
    tiny_examples,
    tiny_network,
)
from model.families.tiny import FAMILIES, tiny
from model.families.tokenizers_made import wordpiece
from reference import norms
from reference.extraction import Blocks

LENGTHS = np.array([len(e) for e in tiny_examples()])
BINNING = 4e-3


def _by_category(reference: list[Blocks]) -> dict[tuple[str, str], np.ndarray]:
    attention = [b["attention"] for b in reference]
    lengths = [norms.value_norm(b["f"]) for b in reference]
    weighted = [norms.weighted_norm(b["attention"], b["f"]) for b in reference]
    summed = [norms.layer_weighted_norm(b["attention"], b["f"]) for b in reference]
    expected = {}
    for category, kind in flags(tiny_examples()).items():
        expected["attention", category] = norms.category_sum(attention, kind)
        expected["value_norm", category] = norms.category_mean(lengths, kind)
        expected["weighted_norm", category] = norms.category_sum(weighted, kind)
        expected["layer_weighted_norm", category] = norms.category_sum(summed, kind)
    return expected


@pytest.mark.parametrize(
    ("dtype", "size", "tolerance"),
    [(torch.float64, 1, 1e-10), (torch.float64, 7, 1e-10), (torch.float32, 3, 5e-5)],
)
def test_category_averages_agree_with_the_reference(
    reference: list[Blocks], dtype: torch.dtype, size: int, tolerance: float
) -> None:
    found = run({"norms": {}}, network=tiny_network(dtype), size=size)["norms"]
    for (name, category), expected in _by_category(reference).items():
        np.testing.assert_allclose(
            found[name].sel(category=category), expected, rtol=0, atol=tolerance
        )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 5e-5)])
def test_the_spread_of_value_norms_agrees_with_the_reference(
    reference: list[Blocks], dtype: torch.dtype, tolerance: float
) -> None:
    found = run({"norms": {}}, network=tiny_network(dtype))["norms"]
    expected = norms.dispersion([norms.value_norm(b["f"]) for b in reference])
    for name in ("mean", "sd", "cv", "max", "min"):
        np.testing.assert_allclose(
            found[f"value_norm_{name}"], expected[name], rtol=0, atol=tolerance
        )


def test_the_largest_and_smallest_norm_have_no_interval_and_ignore_padding() -> None:
    found = [run({"norms": {}}, size=size)["norms"] for size in (1, 7)]
    for name in ("value_norm_max", "value_norm_min"):
        assert f"{name}_ci_low" not in found[0]
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-12)


@pytest.mark.parametrize("category", CATEGORIES)
def test_exact_cancellation_agrees_with_the_reference(
    reference: list[Blocks], category: str
) -> None:
    found = run({"norms": {"cancellation": "all"}})["norms"].spearman_attention_value_norm
    expected = norms.spearman_attention_value_norm(
        [b["attention"] for b in reference],
        [norms.value_norm(b["f"]) for b in reference],
        flags(tiny_examples())[category],
    )
    assert float(found.sel(category=category)) == pytest.approx(expected, abs=BINNING)


def test_the_frequency_effect_agrees_with_the_reference(reference: list[Blocks]) -> None:
    found = run({"norms": {}})["norms"].spearman_frequency
    expected = norms.spearman_frequency(
        [b["attention"] for b in reference],
        [norms.value_norm(b["f"]) for b in reference],
        [RANK[e.input_ids] * 1.0 for e in tiny_examples()],
    )
    for quantity, value in expected.items():
        assert float(found.sel(quantity=quantity)) == pytest.approx(value, abs=BINNING)


def test_the_frequency_profile_is_the_mean_by_octave_of_the_rank(reference: list[Blocks]) -> None:
    found = run({"norms": {}})["norms"].frequency_profile
    tokens = [norms.token_means(b["attention"], norms.value_norm(b["f"])) for b in reference]
    octave = np.floor(np.log2(np.concatenate([RANK[e.input_ids] for e in tiny_examples()])))
    for quantity in ("value_norm", "attention"):
        values = np.concatenate([token[quantity] for token in tokens])
        for k in range(6):
            expected = values[octave == k].mean() if (octave == k).any() else np.nan
            profile = found.sel(quantity=quantity).isel(rank_bin=k + 1)
            np.testing.assert_allclose(profile, expected, atol=1e-12)


def test_without_ranks_there_is_no_frequency_effect() -> None:
    assert not [name for name in run({"norms": {}}, rank=None)["norms"] if "frequency" in name]


# --- which pairs are counted ----------------------------------------------------------------


def test_exact_cancellation_counts_every_pair_once() -> None:
    found = run({"norms": {"cancellation": "all"}})["norms"].attention_value_norm_histogram
    assert float(found.sum()) == LAYERS * HEADS * (LENGTHS**2).sum()


def test_a_pair_falls_into_the_cells_that_the_bins_name() -> None:
    draw = np.random.default_rng(3)
    weight = np.float32(draw.random((2, 3, 4, 9)) ** 30)
    weight[0, 0, 0] = [0, 1, 2.0**-30, 2.0**-31, 2.0**-20, 1e-20, 0.5, np.nextafter(1, 0), 1e-45]
    norm = np.float32(np.exp(draw.normal(0, 4, (2, 3, 9))))
    category = draw.integers(0, 3, (2, 4, 9), np.int32)
    of_norm = np.stack([NORM.index(norm), COARSE_NORM.index(norm)]).astype(np.int32)
    size = len(COARSE_WEIGHT) * len(COARSE_NORM)
    cells, counts = np.empty(weight.shape, np.int32), np.zeros((2, 3 * size), np.int64)
    histogram_cells(weight, of_norm, category, BINS, cells, counts)
    at = category[:, None]
    fine = (at * len(WEIGHT) + WEIGHT.index(weight)) * len(NORM) + of_norm[0][:, :, None]
    assert np.array_equal(cells, fine)
    coarse = (at * len(COARSE_WEIGHT) + COARSE_WEIGHT.index(weight)) * len(COARSE_NORM)
    coarse += of_norm[1][:, :, None]
    wanted = [np.bincount(one.ravel(), minlength=3 * size) for one in coarse]
    assert np.array_equal(counts, wanted)
    some = np.zeros(2 * len(WEIGHT) * len(NORM), np.int64)  # without the last category
    count(cells.ravel(), some)
    assert np.array_equal(some, np.bincount(fine.ravel(), minlength=len(some))[: len(some)])


def test_sampled_cancellation_looks_at_the_same_share_of_every_length() -> None:
    """Four queries of every input used to let pairs of long inputs count for too little."""
    rng, lengths = np.random.default_rng(0), np.repeat([5, 12, 31], 200)
    examples = []
    for at, n in enumerate(lengths):
        ids = rng.integers(6, TOKENS, n)
        examples.append(Example(str(at), str(at), ids, ids * 0, ids < 0))
    batch = Batch.of(examples, VOCABULARY, replicates=0)
    part = Cancellation(Scope(LAYERS, HEADS), every=3)
    view = observe(tiny_network(torch.float64), batch)[0]
    part.observe(view, torch.ones(*view.attention.shape[:2], view.attention.shape[-1]), batch)
    rows = (part._category < 4).any(-1).sum(1)
    for n in (5, 12, 31):
        drawn = rows[lengths == n]
        assert set(drawn.tolist()) == {n // 3, -(-n // 3)}
        assert drawn.mean() == pytest.approx(n / 3, abs=4 * 0.5 / 200**0.5)


def test_rows_are_sampled_by_example_not_by_batch() -> None:
    """Exactly: the same rows in any order and any batch."""
    found = [
        run({"norms": {"every": 3}}, examples=order, size=size)["norms"]
        for order, size in ((tiny_examples(), 1), (tiny_examples()[::-1], 4))
    ]
    for name in ("attention_value_norm_histogram", "spearman_attention_value_norm"):
        np.testing.assert_array_equal(found[0][name], found[1][name])


def test_a_decoder_has_no_pairs_with_the_future() -> None:
    network = FAMILIES["BERT decoder"].build().double()
    found = run({"norms": {"cancellation": "all"}}, network=network)["norms"]
    pairs = (LENGTHS * (LENGTHS + 1) / 2).sum()
    assert float(found.attention_value_norm_histogram.sum()) == 2 * 4 * pairs


# --- what there is and what there is not ----------------------------------------------------


def test_a_head_of_zero_values_weighs_nothing_though_it_is_attended_with() -> None:
    def silence(call: AttentionCall) -> None:
        if call.layer == 0:
            call.values = call.values.clone()
            call.values[:, 1] = 0

    found = run({"norms": {}}, change=silence)["norms"]
    plain = run({"norms": {}})["norms"]
    head = {"layer": 0, "head": 1}
    assert (found.weighted_norm.sel(head) == 0).all()
    assert (found.value_norm.sel(head) == 0).all()
    assert found.value_norm_max.sel(head) == found.value_norm_min.sel(head) == 0
    assert np.isnan(found.value_norm_cv.sel(head))
    np.testing.assert_array_equal(found.attention.sel(head), plain.attention.sel(head))
    assert (found.weighted_norm.sel(layer=0, head=[0, 2]) > 0).all()


def test_a_planted_head_gathers_the_norms_of_the_tokens_it_attends_to() -> None:
    """Every token attends to itself alone, so a category receives its own share of the tokens."""
    found = run({"norms": {}}, plant=planted(*[["self"] * 3] * 2))["norms"]
    for category, kind in flags(tiny_examples()).items():
        share = np.mean([flag.mean() for flag in kind])
        np.testing.assert_allclose(found.attention.sel(category=category), share, atol=1e-12)
    total = found.weighted_norm.sum("category").sel(layer=0)
    mean_of_means = np.mean(
        [norms.value_norm(b["f"])[0].mean(-1) for b in blocks(tiny_examples())], axis=0
    )
    np.testing.assert_allclose(total, mean_of_means, atol=1e-10)


def test_a_model_without_special_tokens_has_no_norms_of_them() -> None:
    plain = Vocabulary(cls=None, sep=None, punctuation=(4, 5))
    found = run({"norms": {}}, vocabulary=plain, special={})["norms"]
    for name in ("attention", "value_norm", "weighted_norm", "layer_weighted_norm"):
        for end in ("", "_ci_low", "_ci_high"):
            assert np.isnan(found[name + end].sel(category=["cls", "sep"])).all()
            assert not np.isnan(found[name].sel(category=["punctuation", "other"])).any()
    assert np.isnan(found.spearman_attention_value_norm.sel(category=["cls", "sep"])).all()


def test_the_first_token_is_a_category_of_its_own_where_nothing_opens_the_input(
    reference: list[Blocks],
) -> None:
    plain, examples = Vocabulary(cls=None, sep=None, punctuation=(STOP, COMMA)), tiny_examples()
    options = {"norms": {"cancellation": "all"}}
    found = run(options, vocabulary=plain, special={}, first_token=True)["norms"]
    first = [np.arange(len(e)) == 0 for e in examples]
    marks = [np.isin(e.input_ids, (STOP, COMMA)) for e in examples]
    kinds = {
        "first": first,
        "punctuation": [mark & ~one for mark, one in zip(marks, first, strict=True)],
        "other": [~(mark | one) for mark, one in zip(marks, first, strict=True)],
    }
    lengths = [norms.value_norm(b["f"]) for b in reference]
    maps = [b["attention"] for b in reference]
    weighted = [norms.weighted_norm(b["attention"], b["f"]) for b in reference]
    for name, kind in kinds.items():
        here = found.sel(category=name)
        np.testing.assert_allclose(here.attention, norms.category_sum(maps, kind), atol=1e-10)
        np.testing.assert_allclose(
            here.weighted_norm, norms.category_sum(weighted, kind), atol=1e-10
        )
        rho = norms.spearman_attention_value_norm(maps, lengths, kind)
        assert float(here.spearman_attention_value_norm) == pytest.approx(rho, abs=BINNING)
    assert "first" not in run({"norms": {}})["norms"].category


def test_a_category_that_never_occurs_receives_nothing_and_has_no_length() -> None:
    words = [e for e in tiny_examples() if len(e) in (1, 7)]
    found = run({"norms": {}}, examples=words)["norms"].sel(category=["cls", "sep"])
    assert (found.attention == 0).all()
    assert (found.weighted_norm == 0).all()
    assert np.isnan(found.value_norm).all()


def test_layer_norms_can_be_left_out() -> None:
    assert "layer_weighted_norm" not in run({"norms": {"layer_norms": False}})["norms"]


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted one of sampled, all"):
        run({"norms": {"cancellation": "some"}})


# --- vectors --------------------------------------------------------------------------------


def test_weighted_vectors_and_bias_add_up_to_the_output_of_the_demo_model(demo: Model) -> None:
    """Σ_h Σ_j α f(x_j) + b_O, to 1e-4, on a padded batch."""
    tokens = demo.tokenizer(["The cat sat on the mat.", "Who, if not she, would have known?"])
    examples = [
        example.__class__(str(i), str(i), np.array(ids), np.zeros(len(ids), np.int64), np.zeros(0))
        for i, (ids, example) in enumerate(zip(tokens["input_ids"], tiny_examples(), strict=False))
    ]
    batch = Batch.of(examples, demo.vocabulary, replicates=0)
    assert batch.padded
    for view in observe(demo.network, batch):
        mixed = view.attention @ view.values  # [example, head, query, dim]
        f = torch.einsum("bhqd,hdm->bqm", mixed, view.projection.weight)
        gap = (f + view.projection.bias - view.output)[batch.mask]
        assert gap.abs().max() < 1e-4


def test_grouped_query_heads_have_the_norms_of_their_own_projection() -> None:
    """Llama's four heads share two value heads; the first layer worked out by hand."""
    network = tiny("Llama")
    examples = tiny_examples()
    batch = Batch.of(examples, VOCABULARY, replicates=0)
    view = observe(network, batch)[0]
    block = network.layers[0]
    with torch.no_grad():
        x = block.input_layernorm(network.embed_tokens(batch.input_ids))
        values = block.self_attn.v_proj(x).numpy()  # [example, token, value head·dim]
    weight = block.self_attn.o_proj.weight.detach().numpy()  # [model, head·dim]
    for head in range(4):
        group = head // 2
        f = values[..., 8 * group : 8 * group + 8] @ weight[:, 8 * head : 8 * head + 8].T
        expected = np.linalg.norm(f, axis=-1)
        np.testing.assert_allclose(view.value_norm[:, head], expected, rtol=1e-5)


@pytest.mark.parametrize(("opened", "family"), [(False, "GPT-2"), (True, "GPT-2"), (False, "BERT")])
def test_only_a_decoder_without_an_opening_token_has_its_first_token_apart(opened, family) -> None:
    tokenizer = wordpiece()
    if not opened:
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="$A", pair="$A $B")
    model = hs.load(FAMILIES[family].build(), tokenizer=tokenizer)
    texts = hs.corpus.MemoryCorpus(["the cat sat.", "a cat, the cat."])
    wanted = hs.Settings(analyses=("surface", "norms"), replicates=0)
    found = hs.atlas(model, texts, settings=wanted)
    apart = family == "GPT-2" and not opened
    assert ("first" in found["norms"].category) is apart
    assert ("rest_attention" in found["surface"]) is apart
