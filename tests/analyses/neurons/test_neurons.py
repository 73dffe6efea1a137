"""Does `neurons` say how many neurons make a score, which, and where they come from?

The reference is plain loops in float64 (tests/reference/neurons.py); planted queries and keys give
numbers that can be worked out by hand.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import spearmanr

from analyses.running import observe, run
from headscope.analyses.neurons.measure import TOP, Neurons
from headscope.analyses.neurons.measure_keys import CONTRASTS
from headscope.analyses.neurons.measure_sets import _by_product, _compiled, chance
from headscope.core.results import without_draws
from headscope.corpus import Encoder
from headscope.corpus.document import Example
from headscope.errors import HeadscopeError, ModelError
from headscope.model.batch import Batch
from headscope.model.families.embeddings import PARTS
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import Model
from headscope.model.vocabulary import Vocabulary
from headscope.run.analysis import Scope
from headscope.run.contract_bench import CLS, SEP, VOCABULARY, tiny_examples, tiny_network
from model.families.tiny import tiny
from reference import extraction, neurons

NAMES = (
    "effective",
    "relative_score",
    "position_overlap",
    "top_share",
    "neuron_importance",
    "separation",
    "separation_score",
    "separation_effective",
    "own_segment_overlap",
)
TEXT = (
    ("The river had risen in the night, and nobody crossed it.", None),
    ("She put the letter back. Nothing in it was new!", "He had read it twice before."),
    ("Does it rain?", "It rains; take a coat, and do not forget the key to the shed."),
)


@pytest.fixture(scope="module")
def text(demo: Model) -> list[Example]:
    """Three real inputs, two of them pairs, as the demo model reads them."""
    from headscope.corpus.document import Document, Passage

    encoder = Encoder(demo.tokenizer, model_limit=512, has_segments=True)
    documents = [
        Document(str(at), (Passage(str(at), text=one, text_pair=two),))
        for at, (one, two) in enumerate(TEXT)
    ]
    return [example for document in documents for example in encoder.encode(document)]


@pytest.fixture(scope="module")
def wide(demo: Model) -> Any:
    return extraction.float64_copy(demo.network)


@pytest.fixture(scope="module")
def found(demo: Model, wide: Any, text: list[Example]) -> xr.Dataset:
    """The analysis on real text, in float64 and one padded batch."""
    special = demo.special_tokens
    return run(
        {"neurons": {}},
        network=wide,
        examples=text,
        size=3,
        vocabulary=demo.vocabulary,
        special=special,
    )["neurons"]


def seen_alone(network: Any, example: Example) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, k and attention of one example as the reference reads them."""
    q, k = neurons.queries_and_keys(network, example.input_ids, example.segment_ids)
    return q, k, extraction.attention_maps(network, example.input_ids, example.segment_ids)


@pytest.fixture(scope="module")
def expected(demo: Model, wide: Any, text: list[Example]) -> dict[str, np.ndarray]:
    """The same by the reference, one input at a time."""
    alone = []
    for example in text:
        q, k, attention = seen_alone(wide, example)
        everything = np.ones(attention.shape[2:], bool)
        is_sep = example.input_ids == demo.vocabulary.sep
        kinds = neurons.kinds(is_sep, example.segment_ids.tolist(), example.special)
        scale, words = q.shape[-1] ** -0.5, neurons.words(example.special)
        alone.append(neurons.measures(q, k, attention, scale, everything, kinds, words))
    return neurons.over_examples(alone)


@pytest.mark.parametrize("name", NAMES)
def test_real_text_agrees_with_the_reference(
    found: xr.Dataset, expected: dict[str, np.ndarray], name: str
) -> None:
    assert np.isfinite(expected[name]).all()
    np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-9)


def test_the_parts_of_the_first_layer_agree_with_the_reference(
    demo: Model, wide: Any, text: list[Example], found: xr.Dataset
) -> None:
    attended, separating = [], {name: [] for name in CONTRASTS}
    for example in text:
        q, k = neurons.first_layer_parts(wide, example.input_ids, example.segment_ids)
        attention = seen_alone(wide, example)[2][0]
        heads, n = attention.shape[:2]
        scale = q.shape[-1] ** -0.5
        chosen = np.eye(n)[attention.argmax(-1)]  # [head, query, key]
        attended.append(neurons.split_by_part(q, k, (chosen - 1 / n) / n, scale))
        is_sep, special = example.input_ids == demo.vocabulary.sep, example.special
        for name, kind in neurons.kinds(is_sep, example.segment_ids, special).items():
            other = ~kind & neurons.words(special) if name == "own_segment" else ~kind
            there = kind.any(1) & other.any(1)
            if there.any():
                mine = kind / np.maximum(kind.sum(1, keepdims=True), 1)
                rest = other / np.maximum(other.sum(1, keepdims=True), 1)
                weights = (mine - rest) * there[:, None] / there.sum()
                weights = np.broadcast_to(weights, (heads, n, n))
                separating[name].append(neurons.split_by_part(q, k, weights, scale))
    total = np.sum(attended, axis=0)
    np.testing.assert_allclose(
        found.embedding_share, total / total.sum((1, 2), keepdims=True), rtol=1e-9, atol=1e-9
    )
    for name, values in separating.items():
        np.testing.assert_allclose(
            found.embedding_separation.sel(contrast=name), np.mean(values, axis=0), atol=1e-9
        )


def test_the_parts_add_up_to_the_whole_score(found: xr.Dataset) -> None:
    pair = ("part", "part_other")
    np.testing.assert_allclose(found.embedding_share.sum(pair), 1, atol=1e-12)
    np.testing.assert_allclose(
        found.embedding_separation.sum(pair), found.separation_score.sel(layer=0), atol=1e-10
    )
    np.testing.assert_allclose(
        found.separation.sum("neuron"), found.separation_score, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(found.neuron_importance.sum("neuron"), 1, atol=1e-12)
    np.testing.assert_allclose(found.embedding_share.sel(part_other="bias"), 0, atol=1e-12)
    np.testing.assert_allclose(found.chance_overlap, neurons.chance_overlap(32), rtol=1e-12)


# --- other families -------------------------------------------------------------------------


def _causal(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n), bool))


def _window(n: int, *, back: int, ahead: int) -> np.ndarray:
    place = np.arange(n)
    far = place[None] - place[:, None]
    return (far >= -back) & (far <= ahead)


@pytest.mark.parametrize(
    ("family", "sees"),
    [
        ("GPT-2", [_causal] * 2),
        ("Llama", [_causal] * 2),
        ("T5", [lambda n: np.ones((n, n), bool)] * 2),
        ("Mistral", [lambda n: _causal(n) & _window(n, back=3, ahead=0)] * 2),
        (
            "ModernBERT",
            [
                lambda n: np.ones((n, n), bool),
                lambda n: _window(n, back=2, ahead=2),
                lambda n: np.ones((n, n), bool),
            ],
        ),
    ],
)
def test_queries_count_the_keys_that_they_see_in_every_family(
    family: str, sees: Sequence[Callable[[int], np.ndarray]]
) -> None:
    """Causal, windowed and rotated: q, k as shown, the keys seen by rule, the rest by loops."""
    network = copy.deepcopy(tiny(family)).double()
    encoder = network.get_encoder() if family == "T5" else network
    vocabulary = Vocabulary(cls=CLS, sep=SEP, punctuation=(4, 5), pad=0)
    examples = [replace(e, segment_ids=np.zeros_like(e.input_ids)) for e in tiny_examples()]
    result = run(
        {"neurons": {}}, network=encoder, examples=examples, vocabulary=vocabulary, rank=None
    )["neurons"]
    alone: list[dict[str, np.ndarray]] = []
    for example in examples:
        views = observe(encoder, Batch.of([example], vocabulary, replicates=0))
        n = len(example)
        kinds = neurons.kinds(example.input_ids == SEP, [0] * n, example.special)
        words = neurons.words(example.special)
        layers = []
        for view, see in zip(views, sees, strict=True):
            q, k, attention = (
                tensor.double().numpy()[:, :, :n]
                for tensor in (view.queries, view.keys, view.attention)
            )
            layers.append(
                neurons.measures(q, k, attention[..., :n], view.scaling, see(n), kinds, words)
            )
        alone.append({name: np.concatenate([one[name] for one in layers]) for name in NAMES})
    for name, expected in neurons.over_examples(alone).items():
        # Llama-like families take their softmax in float32
        np.testing.assert_allclose(result[name], expected, rtol=2e-6, atol=2e-6, err_msg=name)
    assert np.isnan(result.embedding_share).all() == (family != "GPT-2")
    assert np.isnan(result.separation.sel(contrast="same_segment")).all()
    decoder = family in ("GPT-2", "Llama", "Mistral")
    assert np.isnan(result.separation.sel(contrast="next")).all() == decoder


@pytest.mark.parametrize("family", ["BERT", "Gemma2", "Mistral", "ModernBERT", "GPT-2", "T5"])
def test_batch_size_changes_nothing(family: str) -> None:
    network = tiny(family).get_encoder() if family == "T5" else tiny(family)
    vocabulary = Vocabulary(cls=CLS, sep=SEP, punctuation=(4, 5), pad=0)
    alone, together = (
        run({"neurons": {}}, network=network, size=size, vocabulary=vocabulary, rank=None)[
            "neurons"
        ]
        for size in (1, 7)
    )
    for name in alone:
        np.testing.assert_allclose(together[name], alone[name], rtol=1e-4, atol=1e-4)


# --- by hand --------------------------------------------------------------------------------


def shown(
    queries: torch.Tensor, keys: torch.Tensor, *, ids: Sequence[int] | None = None, **fields: Any
) -> xr.Dataset:
    """The analysis of one layer of planted vectors [head, token, neuron], scaling 1."""
    heads, n, width = queries.shape
    ids = [9] * n if ids is None else ids
    array = np.array(ids, np.int64)
    special = np.isin(array, [CLS, SEP])
    example = Example("e", "d", array, fields.pop("segments", np.zeros_like(array)), special)
    batch = Batch.of([example], VOCABULARY, replicates=2)
    pad = batch.input_ids.shape[1] - n
    q, k = (torch.nn.functional.pad(t[None], (0, 0, 0, pad)) for t in (queries, keys))
    scores = (q @ k.transpose(2, 3)).masked_fill(~batch.mask[:, None, None], -torch.inf)
    site = SimpleNamespace(embeddings=None, attention=torch.nn.Identity())
    view = LayerView(0, "encoder", scores.softmax(-1), q, k, None, site, **fields)
    analysis = Neurons(Scope(1, heads, 1, replicates=2, neurons=width))
    analysis.observe(view, batch)
    return analysis.result().isel(layer=0)


def test_one_neuron_alone_is_one_at_every_position() -> None:
    keys = torch.zeros(1, 6, 32)
    keys[0, :, 5] = torch.arange(6.0)
    found = shown(torch.ones(1, 6, 32), keys).isel(head=0)
    assert float(found.effective) == pytest.approx(1)
    np.testing.assert_allclose(found.top_share, [1, 1, 1])
    assert float(found.position_overlap) == 1
    np.testing.assert_allclose(found.neuron_importance, np.eye(32)[5])
    assert float(found.relative_score) == pytest.approx(5 - 2.5)


def test_equal_neurons_all_count() -> None:
    keys = torch.arange(6.0)[None, :, None].expand(1, 6, 32)
    found = shown(torch.ones(1, 6, 32), keys).isel(head=0)
    assert float(found.effective) == pytest.approx(32)
    np.testing.assert_allclose(found.top_share, [1 / 32, 4 / 32, 16 / 32], rtol=1e-6)
    assert float(found.position_overlap) == 1
    np.testing.assert_allclose(found.neuron_importance, 1 / 32, rtol=1e-6)


def test_a_share_worked_out_by_hand() -> None:
    """c' = (3, -1, 0, …) at both queries: (3 + 1)² / (9 + 1) = 1.6."""
    queries = torch.ones(1, 2, 32)
    keys = torch.zeros(1, 2, 32)
    keys[0, 1, 0], keys[0, 1, 1] = 6.0, -2.0
    found = shown(queries, keys).isel(head=0)
    assert float(found.effective) == pytest.approx(1.6)
    np.testing.assert_allclose(found.top_share, [0.75, 1, 1], rtol=1e-6)
    assert float(found.relative_score) == pytest.approx(2)
    np.testing.assert_allclose(found.neuron_importance[:3], [0.75, 0.25, 0], rtol=1e-6)


def test_random_queries_overlap_by_chance() -> None:
    generator = torch.Generator().manual_seed(0)
    queries, keys = (torch.randn(4, 120, 64, generator=generator) for _ in range(2))
    keys[:] = keys[:, :1]
    keys[:, 0] *= 40  # all queries that like it attend to this one: c' differs by q alone
    found = shown(queries, keys)
    keys_matter = shown(queries, torch.randn(4, 120, 64, generator=generator) * 0.01 + 1e-3)
    assert float(keys_matter.position_overlap.mean()) == pytest.approx(chance(64), abs=0.01)
    assert float(found.position_overlap.mean()) > chance(64) + 0.05  # the same key: more alike
    assert chance(64) == pytest.approx(neurons.chance_overlap(64))
    assert chance(8) == 1


def test_the_neurons_that_separate_a_kind_are_named() -> None:
    ids = [CLS, 9, 9, SEP, 9, SEP]
    segments = np.array([0, 0, 0, 0, 1, 1])
    keys, queries = torch.zeros(1, 6, 32), torch.zeros(1, 6, 32)
    queries[..., :4] = 1
    keys[0, [3, 5], 0] = 2.0  # separators
    keys[0, :4, 1] = 1.0  # the first segment
    queries[0, 4:, 1] = -1.0
    found = shown(queries, keys, ids=ids, segments=segments).isel(head=0)
    sep = found.separation.sel(contrast="sep")
    assert float(sep[0]) == pytest.approx(2)
    # of 4 queries of segment 0 and 2 of segment 1, mean key .5 for [SEP] and .75 for others
    assert float(sep[1]) == pytest.approx((4 * -0.25 + 2 * 0.25) / 6)
    same = found.separation.sel(contrast="same_segment")
    assert float(same[1]) == pytest.approx(1)  # 1 - 0 and -(0 - 1)
    np.testing.assert_allclose(found.separation[:, 2:], 0, atol=1e-7)
    score = 2 + (4 * -0.25 + 2 * 0.25) / 6
    assert float(found.separation_score.sel(contrast="sep")) == pytest.approx(score)
    assert float(found.separation_effective.sel(contrast="sep")) == pytest.approx(
        2.25**2 / (4 + 0.0625)
    )


def test_a_head_whose_single_neuron_carries_the_sentence_is_a_bag_of_words_by_it() -> None:
    """Of two heads, the first has one neuron that says the sentence, with a score of ±30 for it.

    [CLS] and [SEP] have keys that no query likes. So its words attend to the words of their own
    sentence alone, evenly: the bag is 1, by neuron 7, at every position. The second head has no
    score at all: uniform attention has 3 of 8 keys in common with a sentence of 3 words, and 2 of
    8 with one of 2, so that it is none.
    """
    ids = [CLS, 9, 10, 11, SEP, 12, 13, SEP]
    side = torch.tensor([0.0, 1, 1, 1, 0, -1, -1, 0])
    queries, keys = torch.zeros(2, 8, 32), torch.zeros(2, 8, 32)
    queries[0, :, 7], keys[0, :, 7] = side, 30 * side
    queries[0, :, 3], keys[0, :, 3] = 1.0, -100.0 * (side == 0)  # the same for all words
    found = shown(queries, keys, ids=ids)
    assert float(found.bag_of_words[0]) == pytest.approx(1, abs=1e-6)
    assert float(found.bag_of_words[1]) == pytest.approx(0, abs=1e-7)
    own = found.isel(head=0).sel(contrast="own_segment")
    np.testing.assert_allclose(own.separation, 60 * np.eye(32)[7], atol=1e-5)
    assert float(own.separation_score) == pytest.approx(60)
    assert float(own.separation_effective) == pytest.approx(1)
    assert float(own.own_segment_overlap) == 1


def test_inputs_of_one_sentence_say_nothing_of_bags_of_words() -> None:
    found = shown(torch.ones(1, 4, 32), torch.ones(1, 4, 32), ids=[CLS, 9, 10, SEP])
    for name in ("bag_of_words", "own_segment_overlap"):
        assert np.isnan(found[name]).all()
    assert np.isnan(found.rank_correlation.sel(target="own_segment")).all()


def test_bags_of_words_agree_with_the_reference(
    wide: Any, text: list[Example], found: xr.Dataset
) -> None:
    alone = []
    for example in text:
        attention = seen_alone(wide, example)[2]
        seen = np.ones(attention.shape[2:], bool)
        bags = [
            neurons.bag_of_words(attention[at], example.special.tolist(), seen)
            for at in np.ndindex(attention.shape[:2])
        ]
        alone.append(np.reshape(bags, attention.shape[:2]))
    np.testing.assert_allclose(found.bag_of_words, np.nanmean(alone, 0), rtol=1e-5, atol=1e-6)
    for quantity, name in (
        ("effective", "separation_effective"),
        ("position_overlap", "own_segment_overlap"),
    ):
        numbers = found[name]
        if "contrast" in numbers.dims:
            numbers = numbers.sel(contrast="own_segment")
        expected = spearmanr(numbers.values.ravel(), found.bag_of_words.values.ravel()).statistic
        value = found.rank_correlation.sel(quantity=quantity, target="own_segment")
        assert float(value) == pytest.approx(expected, abs=1e-12)


# --- what there is not ----------------------------------------------------------------------


def test_a_head_without_queries_has_no_neurons() -> None:
    queries = torch.stack([torch.zeros(5, 32), torch.ones(5, 32)])
    keys = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(1))
    found = shown(queries, keys)
    for name in (
        "effective",
        "position_overlap",
        "top_share",
        "neuron_importance",
        "relative_score",
    ):
        assert np.isnan(found[name].isel(head=0)).all()
        assert np.isfinite(found[name].isel(head=1)).all()


def test_inputs_without_a_kind_say_nothing_of_it() -> None:
    words = [e for e in tiny_examples() if len(e) in (1, 7)]
    found = run({"neurons": {}}, examples=words)["neurons"]
    for contrast in ("sep", "same_segment"):
        for name in ("separation", "separation_score", "separation_effective"):
            assert np.isnan(found[name].sel(contrast=contrast)).all()
        assert np.isnan(found.embedding_separation.sel(contrast=contrast)).all()
    assert np.isfinite(found.separation_score.sel(contrast="next")).all()


def test_a_single_token_has_nothing_to_choose_from() -> None:
    found = run({"neurons": {}}, examples=[e for e in tiny_examples() if len(e) == 1])["neurons"]
    for name in without_draws(found):
        assert np.isnan(found[name]).all()


def test_heads_are_ranked_beside_what_they_attend_to(
    demo: Model, wide: Any, text: list[Example], found: xr.Dataset
) -> None:
    """By the attention that `surface` finds, and scipy."""
    surface = run(
        {"surface": {}},
        network=wide,
        examples=text,
        vocabulary=demo.vocabulary,
        special=demo.special_tokens,
    )["surface"].attention
    for quantity in ("effective", "position_overlap"):
        for target in ("sep", "next", "previous"):
            share = surface.sel(target=target).values.ravel()
            expected = spearmanr(found[quantity].values.ravel(), share).statistic
            value = found.rank_correlation.sel(quantity=quantity, target=target)
            assert float(value) == pytest.approx(expected, abs=1e-12)


def test_results_are_labelled_for_readers(found: xr.Dataset) -> None:
    assert found["k"].values.tolist() == list(TOP)
    assert found["contrast"].values.tolist() == list(CONTRASTS)
    assert found["part"].values.tolist() == list(PARTS) == found["part_other"].values.tolist()


# --- what is refused ------------------------------------------------------------------------


def test_keys_with_gaps_between_them_are_refused() -> None:
    mask = torch.zeros(1, 1, 8, 8)
    mask[..., 2] = torch.finfo(torch.float32).min
    with pytest.raises(ModelError, match="gaps"):
        shown(torch.ones(1, 6, 32), torch.ones(1, 6, 32), mask=mask)


def test_heads_that_see_different_keys_are_refused() -> None:
    with pytest.raises(ModelError, match="different keys"):
        shown(torch.ones(2, 6, 32), torch.ones(2, 6, 32), mask=torch.zeros(1, 2, 8, 8))


def test_layers_of_different_width_are_refused() -> None:
    analysis = Neurons(Scope(2, 3, neurons=16))
    batch = Batch.of(tiny_examples()[:2], VOCABULARY, replicates=0)
    with pytest.raises(HeadscopeError, match="8 neurons per head, wanted 16"):
        analysis.observe(observe(tiny_network(torch.float64), batch)[0], batch)


def test_embeddings_put_together_in_another_way_are_refused() -> None:
    network = copy.deepcopy(tiny_network(torch.float64))
    network.embeddings.word_embeddings.register_forward_hook(lambda _m, _a, out: out * 2)
    wrong = copy.deepcopy(network.embeddings.word_embeddings)
    wrong._forward_hooks.clear()
    batch = Batch.of(tiny_examples()[:3], VOCABULARY, replicates=0)
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[views.append]):
        network(batch.input_ids, attention_mask=batch.mask.long(), token_type_ids=batch.segment_ids)
    known = views[0].site.embeddings
    views[0].site = replace(views[0].site, embeddings=replace(known, word=wrong))
    with pytest.raises(ModelError, match="do not add up"):
        Neurons(Scope(2, 3, replicates=0, neurons=8)).observe(views[0], batch)


@pytest.mark.parametrize("width", [5, 8, 64, 130])
def test_overlaps_by_bits_are_those_by_products(width: int) -> None:
    sets = torch.rand(3, 20, 4, width, generator=torch.Generator().manual_seed(width)) < 0.2
    sets[1, 12:] = False
    np.testing.assert_allclose(_compiled(sets), _by_product(sets), rtol=1e-6)
