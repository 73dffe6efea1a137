"""Does `pairs` say how much subjects and verbs, nouns and pronouns attend to each other?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from analyses.running import blocks, run
from analyses.sentences import (
    DOCTOR,
    KEYS,
    LETTERS,
    LINKS,
    PIECES,
    sentence,
    sentences,
    tokens_of,
    weight_between,
    window,
)
from headscope.analyses.features.claims import PAIRS
from headscope.analyses.features.measure import Pairs
from headscope.claims.dictionary import terms
from headscope.corpus.document import Example
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import tiny_network
from reference import features as reference

Weights = dict[tuple[int, int], float]


def found(example: Example, weights: Weights, **options: str) -> dict[str, float]:
    """The values of one example under planted attention from query to key."""
    plant = weight_between({example.id: weights})
    values = run({"pairs": options}, examples=[example], plant=plant)["pairs"].attention
    return {pair: float(values.sel(pair=pair)[0, 0]) for pair in PAIRS}


@pytest.mark.parametrize("options", [{}, {"pairing": "zip"}, {"measure": "weighted_norm"}])
def test_it_keeps_the_contract(options: dict[str, str]) -> None:
    check_analysis(Pairs, **options)


@pytest.mark.parametrize("pairing", ["product", "zip"])
@pytest.mark.parametrize("measure", ["attention", "weighted_norm"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_random_maps_agree_with_the_reference(
    pairing: str, measure: str, dtype: torch.dtype
) -> None:
    examples = sentences()
    wanted = {"pairs": {"pairing": pairing, "measure": measure}}
    result = run(wanted, examples=examples, network=tiny_network(dtype))["pairs"]
    weights = [
        b["attention"]
        if measure == "attention"
        else reference.weighted_norms(b["attention"], b["f"])
        for b in blocks(examples)
    ]
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    for kind in ("subject_verb", "noun_pronoun"):
        links = [
            [
                (tokens_of(example, [one]), tokens_of(example, [other]))
                for one, other in LINKS[example.id].get(kind, [])
            ]
            for example in examples
        ]
        one, other = kind.split("_")
        back = [[(b, a) for a, b in given] for given in links]
        for pair, given in ((f"{one}_to_{other}", links), (f"{other}_to_{one}", back)):
            expected = reference.between(weights, given, zipped=pairing == "zip")
            np.testing.assert_allclose(
                result.attention.sel(pair=pair), expected, rtol=0, atol=tolerance, err_msg=pair
            )
            assert result["count"].sel(pair=pair) == sum(map(bool, given))
    assert result.attention.units == ("probability" if measure == "attention" else "1")


def test_a_pair_has_the_largest_weight_of_all_its_tokens_in_one_direction() -> None:
    """[CLS] Let ##ters were re ##a ##d by Nora . [SEP]: subject 1, 2; verb 4, 5, 6."""
    example = sentence("letters", LETTERS, pieces=PIECES["letters"])
    weights: Weights = {(1, 4): 0.1, (2, 6): 0.4, (5, 1): 0.2, (1, 3): 0.8, (9, 1): 0.7}
    got = found(example, weights)
    assert got["subject_to_verb"] == pytest.approx(0.4, abs=1e-12)
    assert got["verb_to_subject"] == pytest.approx(0.2, abs=1e-12)
    assert np.isnan(got["noun_to_pronoun"])
    assert np.isnan(got["pronoun_to_noun"])


def test_a_subject_whose_head_is_no_verb_makes_no_pair() -> None:
    """ "She is a doctor": her head is the noun; she and the doctor are a noun and a pronoun."""
    got = found(sentence("doctor", DOCTOR), {(1, 2): 0.9, (1, 4): 0.3, (4, 1): 0.2})
    assert np.isnan(got["subject_to_verb"])
    assert np.isnan(got["verb_to_subject"])
    assert got["pronoun_to_noun"] == pytest.approx(0.3, abs=1e-12)
    assert got["noun_to_pronoun"] == pytest.approx(0.2, abs=1e-12)


def test_a_subject_is_paired_with_its_own_verb_only() -> None:
    """Nora (1) sees (4), they (12) sing (13); Nora to sing is no pair."""
    got = found(sentence("keys", KEYS), {(1, 13): 0.9, (12, 4): 0.8, (12, 13): 0.3, (1, 4): 0.2})
    assert got["subject_to_verb"] == pytest.approx(0.3, abs=1e-12)


def test_zip_pairs_the_tokens_in_order_whichever_belong_together() -> None:
    """Subjects 1, 2, 3 and 15; verbs 6 and 16, 17: so 1-6, 2-16, 3-17, and 15 with none."""
    example = sentence("keys", KEYS, pieces=PIECES["keys"])
    assert tokens_of(example, [0, 11]) == [1, 2, 3, 15]
    assert tokens_of(example, [3, 12]) == [6, 16, 17]
    weights: Weights = {(15, 16): 0.9, (2, 6): 0.8, (2, 16): 0.3, (3, 17): 0.2, (1, 6): 0.1}
    weights |= {(16, 2): 0.4, (6, 2): 0.5}
    got = found(example, weights, pairing="zip")
    assert got["subject_to_verb"] == pytest.approx(0.3, abs=1e-12)
    assert got["verb_to_subject"] == pytest.approx(0.4, abs=1e-12)
    assert found(example, weights)["subject_to_verb"] == pytest.approx(0.9, abs=1e-12)


def test_a_pair_with_a_word_in_another_window_is_no_pair() -> None:
    """[CLS] see her keys … they sing . [SEP], without Nora: they and sing are 9 and 10."""
    whole = sentence("keys", KEYS)
    keep = np.r_[0, 4 : len(whole)]
    weights: Weights = {(9, 1): 0.9, (9, 10): 0.2, (0, 1): 0.8}
    for pairing in ("product", "zip"):
        got = found(window(whole, keep), weights, pairing=pairing)
        assert got["subject_to_verb"] == pytest.approx(0.2, abs=1e-12)
        nothing = found(
            window(whole, np.arange(3)), {(1, 2): 0.9}, pairing=pairing
        )  # [CLS] Nora did
        assert np.isnan(list(nothing.values())).all()


def test_an_input_without_a_pair_is_left_out() -> None:
    plant = weight_between({"keys": {(12, 13): 0.3}, "doctor": {(1, 4): 0.8}})
    examples = [sentence("keys", KEYS), sentence("doctor", DOCTOR)]
    got = run({"pairs": {}}, examples=examples, plant=plant)["pairs"]
    np.testing.assert_allclose(got.attention.sel(pair="subject_to_verb"), 0.3, atol=1e-12)
    np.testing.assert_allclose(got.attention.sel(pair="pronoun_to_noun"), 0.8 / 2, atol=1e-12)
    assert got["count"].values.tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("options", [{"pairing": "all"}, {"measure": "norm"}])
def test_an_unknown_option_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="wanted one of"):
        run({"pairs": options}, examples=sentences())


@pytest.mark.parametrize("word", PAIRS)
def test_every_kind_of_pair_is_in_the_dictionary(word: str) -> None:
    assert word in terms()
