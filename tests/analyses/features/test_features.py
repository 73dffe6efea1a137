"""Does `features` say how much attention each kind of token receives?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from analyses.running import blocks, run
from analyses.sentences import (
    DOCTOR,
    KEYS,
    LETTERS,
    Row,
    one_row,
    sentence,
    sentences,
    token_kinds,
    weight_between,
    window,
)
from headscope.analyses.features.measure import FEATURES, Features
from headscope.claims.dictionary import terms
from headscope.model.vocabulary import Vocabulary
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import COMMA, STOP, tiny_examples, tiny_network
from reference import features as reference

OPTIONS = (
    {},
    {"absent": "zero"},
    {"measure": "weighted_norm"},
    {"language": "de", "negation": "not"},
)


def found(**how: object) -> dict[str, float]:
    """What each kind receives; all layers and heads do the same."""
    result = run({"features": how.pop("options", {})}, **how)["features"].attention
    values = result.values.reshape(-1, len(FEATURES))
    np.testing.assert_array_equal(values, np.broadcast_to(values[0], values.shape))
    return dict(zip(FEATURES, values[0].tolist(), strict=True))


@pytest.mark.parametrize("options", OPTIONS)
def test_it_keeps_the_contract(options: dict[str, str]) -> None:
    check_analysis(Features, **options)


@pytest.mark.parametrize("absent", ["skip", "zero"])
@pytest.mark.parametrize("measure", ["attention", "weighted_norm"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_random_maps_agree_with_the_reference(
    absent: str, measure: str, dtype: torch.dtype
) -> None:
    options = {"absent": absent, "measure": measure}
    examples = sentences()
    result = run({"features": options}, examples=examples, network=tiny_network(dtype))["features"]
    kinds = [token_kinds(example) for example in examples]
    weights = [
        b["attention"]
        if measure == "attention"
        else reference.weighted_norms(b["attention"], b["f"])
        for b in blocks(examples)
    ]
    for kind in FEATURES:
        zero = absent == "zero" and kind != "negation"
        expected = reference.received(weights, kinds, kind, zero=zero)
        tolerance = 1e-10 if dtype == torch.float64 else 1e-4
        np.testing.assert_allclose(
            result.attention.sel(feature=kind), expected, rtol=0, atol=tolerance, err_msg=kind
        )
    assert result.attention.units == ("probability" if measure == "attention" else "1")
    assert result.attrs["measure"] == measure


def test_a_kind_receives_what_its_most_attended_token_receives() -> None:
    """Of a split word every token stands for itself: neither their sum nor their mean counts."""
    example = sentence("doctor", DOCTOR, pieces={3: 3})  # [CLS] She is a doc ##t ##or [SEP]
    weights = {"doctor": {1: 0.05, 2: 0.1, 4: 0.2, 5: 0.3, 6: 0.15, 7: 0.08}}
    got = found(examples=[example], plant=one_row(weights))
    wanted = {"noun": 0.3, "verb": 0.1, "pronoun": 0.05, "subject": 0.05, "sep": 0.08, "cls": 0.12}
    for kind, value in wanted.items():
        assert got[kind] == pytest.approx(value, abs=1e-12)
    for kind in ("object", "negation", "punctuation"):
        assert np.isnan(got[kind])


def test_the_mean_is_over_all_queries_special_tokens_included() -> None:
    """Only [CLS] and [SEP] attend to the noun, with 0.9 and 0.6; six tokens are asked."""
    example = sentence("doctor", DOCTOR)
    plant = weight_between({"doctor": {(0, 4): 0.9, (5, 4): 0.6}})
    assert found(examples=[example], plant=plant)["noun"] == pytest.approx(1.5 / 6, abs=1e-12)


def test_of_several_separators_and_marks_the_most_attended_counts() -> None:
    example = sentence("letters", LETTERS)
    ids = example.input_ids.copy()
    ids[4] = ids[-1]  # a second [SEP]
    special = example.special | (ids == ids[-1])
    word_index = np.where(special, -1, example.word_index)
    example = replace(example, input_ids=ids, special=special, word_index=word_index)
    got = found(examples=[example], plant=one_row({"letters": {4: 0.3, 7: 0.2, 6: 0.1}}))
    assert got["sep"] == pytest.approx(0.3, abs=1e-12)
    assert got["punctuation"] == pytest.approx(0.1, abs=1e-12)


def test_an_input_without_the_kind_is_left_out() -> None:
    """Only "keys" has an object (tokens 8, 9) and negation (5); the others count nowhere."""
    examples, plant = sentences(), one_row({"keys": {5: 0.2, 8: 0.3}, "doctor": {4: 0.4}})
    got = found(examples=examples, plant=plant)
    assert got["object"] == pytest.approx(0.3, abs=1e-12)
    assert got["negation"] == pytest.approx(0.2, abs=1e-12)
    assert got["noun"] == pytest.approx((0.3 + 0.4 + 0) / 3, abs=1e-12)
    counted = run({"features": {}}, examples=examples)["features"]["count"]
    wanted = {"noun": 3, "verb": 3, "pronoun": 2, "subject": 3, "object": 1, "negation": 1}
    wanted |= {"punctuation": 2, "cls": 3, "sep": 3}
    assert dict(zip(FEATURES, counted.values.tolist(), strict=True)) == wanted


def test_the_notebooks_way_counts_it_as_0_except_for_negation() -> None:
    examples, plant = sentences(), one_row({"keys": {5: 0.2, 8: 0.3}})
    got = found(examples=examples, plant=plant, options={"absent": "zero"})
    assert got["object"] == pytest.approx(0.3 / 3, abs=1e-12)
    assert got["negation"] == pytest.approx(0.2, abs=1e-12)
    result = run({"features": {"absent": "zero"}}, examples=examples)["features"]
    assert result["count"].sel(feature="object") == 1


def test_what_never_occurs_is_absent_and_not_0_even_in_the_notebooks_way() -> None:
    examples = [sentence(name, DOCTOR) for name in "abcde"]
    examples[0] = replace(examples[0], input_ids=examples[0].input_ids[::-1].copy())
    got = run({"features": {"absent": "zero"}}, examples=examples)["features"]
    for end in ("", "_ci_low", "_ci_high"):
        assert np.isnan(got[f"attention{end}"].sel(feature=["object", "negation"])).all()
        assert not np.isnan(got[f"attention{end}"].sel(feature=["noun", "cls"])).any()


def test_a_word_in_another_window_is_not_seen() -> None:
    """The second half of "keys": Nora and the keys are elsewhere, the noise is here."""
    whole = sentence("keys", KEYS)
    part = window(whole, np.r_[0, 8 : len(whole)])  # [CLS], the words from number 7 on, [SEP]
    got = found(examples=[part], plant=one_row({"keys": {1: 0.1, 3: 0.2, 5: 0.3}}))
    assert got["negation"] == pytest.approx(0.1, abs=1e-12)
    assert got["noun"] == pytest.approx(0.2, abs=1e-12)
    assert got["pronoun"] == got["subject"] == pytest.approx(0.3, abs=1e-12)
    assert np.isnan(got["object"])


def test_inputs_without_tags_count_nowhere() -> None:
    """Neither plain text nor a document of bare words, not even for [CLS] and marks."""
    tagged = sentence("doctor", DOCTOR)
    bare: list[Row] = [("Nora", "", 0, ""), (".", "", 1, "")]
    document = sentence("bare", bare)
    plain = replace(sentence("plain", LETTERS), words=None, word_index=None)
    plant = one_row({"bare": {2: 0.5}, "plain": {6: 0.5}, "doctor": {4: 0.25}})
    got = found(examples=[plain, tagged, document], plant=plant)
    assert got["noun"] == pytest.approx(0.25, abs=1e-12)
    assert got["cls"] == pytest.approx(0.75, abs=1e-12)
    assert np.isnan(got["punctuation"])
    counted = run({"features": {}}, examples=[plain, document])["features"]
    assert (counted["count"] == 0).all()
    assert np.isnan(counted["attention"]).all()


def test_a_model_without_special_tokens_has_no_attention_to_them() -> None:
    plain = Vocabulary(cls=None, sep=None, punctuation=(STOP, COMMA))
    got = run({"features": {}}, examples=sentences(), vocabulary=plain, special={})["features"]
    assert np.isnan(got.attention.sel(feature=["cls", "sep"])).all()
    assert not np.isnan(got.attention.sel(feature=["noun", "punctuation"])).any()


def test_own_negation_words_are_looked_for() -> None:
    examples, plant = sentences(), one_row({"doctor": {3: 0.4}})
    options = {"language": "none", "negation": "A"}
    got = found(examples=examples, plant=plant, options=options)
    assert got["negation"] == pytest.approx(0.4, abs=1e-12)


@pytest.mark.parametrize(
    "options", [{"absent": "leave"}, {"measure": "norm"}, {"language": "English"}]
)
def test_an_unknown_option_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="wanted one of"):
        run({"features": options}, examples=tiny_examples())


@pytest.mark.parametrize("word", FEATURES)
def test_every_kind_is_in_the_dictionary(word: str) -> None:
    assert word in terms()
