"""Does `surface` say how much words attend to their own sentence, the other, and their like?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from analyses.running import Plant, run
from headscope.analyses.surface.claims import RULES, WORDS
from headscope.corpus.document import Example
from headscope.model.batch import Batch
from headscope.run.contract_bench import CLS, SEP, tiny_examples, tiny_network
from recorded import claims
from reference import surface
from reference.extraction import Blocks


def pair(first: Sequence[int], second: Sequence[int] = (), name: str = "a") -> Example:
    """[CLS] first [SEP] second [SEP], or [CLS] first [SEP]."""
    ids = np.array([CLS, *first, SEP, *second, *[SEP] * bool(second)], np.int64)
    segment_ids = (np.arange(len(ids)) > len(first) + 1).astype(np.int64)
    return Example(name, name, ids, segment_ids, np.isin(ids, [CLS, SEP]))


PAIRS = [pair([7, 8, 9, 7], [8, 10, 11, 12], "a"), pair([8, 9], [7, 7, 13, 8, 9, 6], "b")]


def measured(plant: Plant | None = None, *, examples: Any = None, **more: Any) -> xr.Dataset:
    return run({"surface": {}}, examples=examples or PAIRS, plant=plant, **more)["surface"]


def planted(rule: Any) -> Plant:
    """The same map in every head; rule(example) gives it as [query, key]."""

    def plant(batch: Batch, _layer: int) -> torch.Tensor:
        tokens = batch.input_ids.shape[1]
        maps = torch.zeros((len(batch.lengths), 3, tokens, tokens), dtype=torch.float64)
        maps[..., 0] = 1
        for row, (example, n) in enumerate(zip(batch.examples, batch.lengths, strict=True)):
            maps[row, :, :n] = 0
            maps[row, :, :n, :n] = torch.from_numpy(rule(example))
        return maps

    return plant


def words_of(example: Example) -> tuple[np.ndarray, np.ndarray]:
    """[query, key] whether both are words of one segment, and of two."""
    word = ~example.special
    both = word[:, None] & word
    mine = example.segment_ids[:, None] == example.segment_ids
    return both & mine, both & ~mine


def evenly(wanted: np.ndarray) -> np.ndarray:
    """Even over the wanted keys; on the token itself where there are none."""
    rows = np.where(wanted.any(1, keepdims=True), wanted, np.eye(len(wanted), dtype=bool))
    return rows / rows.sum(1, keepdims=True)


def assert_reference(found: xr.Dataset, maps: Sequence[np.ndarray], examples: Any, atol: float):
    every = [
        surface.word_example(one, e.input_ids.tolist(), e.special)
        for one, e in zip(maps, examples, strict=True)
    ]

    def mean(kind: str) -> Any:
        with np.errstate(all="ignore"):
            return np.nanmean([one[kind] for one in every], axis=0)

    for kind in surface.KINDS:
        shares = found.word_attention.sel(word_kind=kind)
        np.testing.assert_allclose(shares, mean(kind), rtol=0, atol=atol)
        for row in found.uniform_words.sel(word_kind=kind).values:
            assert row == pytest.approx(float(mean(f"uniform_{kind}")), abs=1e-12)
    np.testing.assert_allclose(found.own_evenness, mean("even"), rtol=0, atol=atol)


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 5e-5)])
def test_shares_agree_with_the_reference(
    reference: list[Blocks], size: int, dtype: torch.dtype, atol: float
) -> None:
    """Compiled loops in float32, plain torch in float64."""
    found = measured(examples=tiny_examples(), network=tiny_network(dtype), size=size)
    maps = [block["attention"] for block in reference]
    assert_reference(found, maps, tiny_examples(), atol)


def test_uniform_attention_is_even_and_gives_each_kind_its_number_of_tokens() -> None:
    found = measured(planted(lambda e: np.full((len(e), len(e)), 1 / len(e))))
    np.testing.assert_allclose(found.own_evenness, 1, atol=1e-12)
    uniform = found.uniform_words.broadcast_like(found.word_attention)
    np.testing.assert_allclose(found.word_attention, uniform, atol=1e-12)
    # 4 of 11 tokens for all words of a; of b's 11, 2 for two words and 6 for six.
    own = np.mean([4 / 11, (2 * 2 + 6 * 6) / 8 / 11])
    np.testing.assert_allclose(found.word_attention.sel(word_kind="own_segment"), own, atol=1e-12)


def test_an_even_spread_over_the_own_sentence_is_all_of_it_and_even() -> None:
    found = measured(planted(lambda e: evenly(words_of(e)[0])))
    shares = found.word_attention
    np.testing.assert_allclose(shares.sel(word_kind="own_segment"), 1, atol=1e-12)
    np.testing.assert_allclose(shares.sel(word_kind="other_segment"), 0, atol=1e-12)
    np.testing.assert_allclose(found.own_evenness, 1, atol=1e-12)


def test_a_head_on_one_word_of_the_own_sentence_is_not_even() -> None:
    found = measured(planted(lambda e: np.eye(len(e))))
    np.testing.assert_allclose(found.word_attention.sel(word_kind="own_segment"), 1, atol=1e-12)
    np.testing.assert_allclose(found.word_attention.sel(word_kind="same_token"), 0, atol=1e-12)
    np.testing.assert_allclose(found.own_evenness, 0, atol=1e-12)


def test_a_head_on_the_other_sentence_gives_its_own_nothing() -> None:
    found = measured(planted(lambda e: evenly(words_of(e)[1])))
    np.testing.assert_allclose(found.word_attention.sel(word_kind="other_segment"), 1, atol=1e-12)
    np.testing.assert_allclose(found.word_attention.sel(word_kind="own_segment"), 0, atol=1e-12)


def test_only_words_that_occur_elsewhere_are_asked_for_their_like() -> None:
    """The others have nowhere to look; in a corpus where none occurs twice there is no number."""

    def alike(example: Example) -> np.ndarray:
        ids = example.input_ids
        same = (ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool) & ~example.special
        return evenly(same & ~example.special[:, None])

    found = measured(planted(alike)).word_attention.sel(word_kind="same_token")
    np.testing.assert_allclose(found, 1, atol=1e-12)
    once = measured(examples=[pair([6, 7], [8, 9], "a"), pair([6, 7], [8, 9], "b")])
    assert np.isnan(once.word_attention.sel(word_kind="same_token")).all()


def test_inputs_of_one_sentence_have_no_own_and_no_other() -> None:
    single = [pair([6, 7, 6], name="a"), pair([7, 7, 8], name="b")]
    found = measured(examples=single)
    for kind in ("own_segment", "other_segment"):
        assert np.isnan(found.word_attention.sel(word_kind=kind)).all()
    assert np.isnan(found.own_evenness).all()
    assert np.isfinite(found.word_attention.sel(word_kind="same_token")).all()
    with_pairs = measured(examples=[*single, *PAIRS]).word_attention
    alone = measured().word_attention
    both = ["own_segment", "other_segment"]
    np.testing.assert_allclose(
        with_pairs.sel(word_kind=both), alone.sel(word_kind=both), atol=1e-12
    )


def test_words_of_a_decoder_are_held_against_the_words_before_them() -> None:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    sizes = {"n_embd": 12, "n_head": 3, "n_layer": 2, "n_positions": 32, "vocab_size": 64}
    network: Any = GPT2Model(GPT2Config(**sizes, attn_implementation="eager")).eval().double()
    found = measured(network=network)
    maps = []
    for example in PAIRS:
        with torch.no_grad():
            given = network(torch.from_numpy(example.input_ids)[None], output_attentions=True)
        maps.append(torch.cat(given.attentions).numpy())
    every = [
        surface.word_example(m, e.input_ids.tolist(), e.special, causal=True)
        for m, e in zip(maps, PAIRS, strict=True)
    ]
    for kind in surface.KINDS:
        expected = np.mean([one[kind] for one in every], axis=0)
        shares = found.word_attention.sel(word_kind=kind)
        np.testing.assert_allclose(shares, expected, rtol=0, atol=1e-9)
    even = np.mean([one["even"] for one in every], axis=0)
    np.testing.assert_allclose(found.own_evenness, even, rtol=0, atol=1e-9)


# --- labels -------------------------------------------------------------------------------------


def labels_of(rule: Any) -> set[str]:
    """The kinds of words among the labels of a model whose heads all attend so, over many pairs."""
    rng = np.random.default_rng(0)
    sentences = [rng.integers(6, 30, (2, 8)).tolist() for _ in range(30)]
    examples = [pair(one, two, str(at)) for at, (one, two) in enumerate(sentences)]

    def nearly(example: Example) -> np.ndarray:
        """The rule but for a few percent, as many as no two documents share: they must differ."""
        share = 0.002 * (1 + int(example.id))
        return (1 - share) * rule(example) + share / len(example)

    plain = run({"surface": {}, "entropy": {}}, examples=examples, plant=planted(nearly), size=30)
    attrs = {"layers": 2, "heads": 3, "documents": len(examples)}
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **plain})
    passing = [claim for claim in claims(tree, "surface") if RULES[claim.kind].passes(claim)]
    assert all(RULES[claim.kind].least < claim.surely <= 1 for claim in passing)
    return {claim.kind for claim in passing if claim.kind in WORDS}


def own_narrowly(example: Example) -> np.ndarray:
    """All attention to the first word of the own sentence."""
    mine = words_of(example)[0]
    return evenly(mine & (np.cumsum(mine, 1) == 1))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (lambda e: evenly(words_of(e)[0]), {"own_segment"}),
        (lambda e: evenly(words_of(e)[1]), {"other_segment"}),
        (own_narrowly, set()),
        (lambda e: np.full((len(e), len(e)), 1 / len(e)), set()),
        (lambda e: evenly(~e.special[:, None] & ~e.special), set()),
    ],
    ids=["own, evenly", "other", "one word of the own", "uniform", "all words alike"],
)
def test_a_label_is_for_what_uniform_attention_does_not_do(rule: Any, expected: set[str]) -> None:
    assert labels_of(rule) == expected


def test_a_head_that_looks_for_the_same_word_is_labelled() -> None:
    def alike(example: Example) -> np.ndarray:
        ids = example.input_ids
        return evenly((ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool))

    assert "same_token" in labels_of(alike)
