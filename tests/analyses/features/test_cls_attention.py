"""Does `cls_attention` say what [CLS] attends to in the last layer?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from analyses.running import blocks, run
from analyses.sentences import DOCTOR, sentence, sentences, token_kinds, weight_between
from headscope.analyses.features.measure import CLS_FEATURES, ClsAttention
from headscope.model.batch import Batch
from headscope.model.vocabulary import Vocabulary
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import COMMA, STOP, tiny_network
from reference import features as reference


@pytest.mark.parametrize("options", [{}, {"measure": "weighted_norm"}, {"language": "none"}])
def test_it_keeps_the_contract(options: dict[str, str]) -> None:
    check_analysis(ClsAttention, **options)


@pytest.mark.parametrize("measure", ["attention", "weighted_norm"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_random_maps_agree_with_the_reference(measure: str, dtype: torch.dtype) -> None:
    examples = sentences()
    wanted = {"cls_attention": {"measure": measure}}
    result = run(wanted, examples=examples, network=tiny_network(dtype))["cls_attention"]
    kinds = [token_kinds(example) for example in examples]
    weights = [
        b["attention"]
        if measure == "attention"
        else reference.weighted_norms(b["attention"], b["f"])
        for b in blocks(examples)
    ]
    assert result.attention.dims == ("head", "feature")
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    for kind in CLS_FEATURES:
        expected = reference.from_cls(weights, kinds, kind)
        np.testing.assert_allclose(
            result.attention.sel(feature=kind), expected, rtol=0, atol=tolerance, err_msg=kind
        )
    counted = [sum(kind in one for one in kinds) for kind in CLS_FEATURES]
    assert result["count"].values.tolist() == counted


def test_only_the_row_of_cls_in_the_last_layer_counts() -> None:
    """[CLS] She is a doc ##tor [SEP]: layer 0 and the other queries say something else."""

    def plant(batch: Batch, layer: int) -> torch.Tensor:
        here = {(0, 4): 0.2, (0, 5): 0.3, (0, 1): 0.1, (2, 4): 0.9}
        elsewhere = {(0, 4): 0.7, (0, 6): 0.2}
        return weight_between({"doctor": here if layer == 1 else elsewhere})(batch, layer)

    example = sentence("doctor", DOCTOR, pieces={3: 2})
    found = run({"cls_attention": {}}, examples=[example], plant=plant)["cls_attention"].attention
    wanted = {"noun": 0.3, "pronoun": 0.1, "subject": 0.1, "verb": 0, "sep": 0}
    for kind, value in wanted.items():
        np.testing.assert_allclose(found.sel(feature=kind), value, atol=1e-12)
    assert np.isnan(found.sel(feature=["object", "negation", "punctuation"])).all()


def test_cls_is_found_where_it_stands() -> None:
    """Some models close their input with it."""
    first = sentence("doctor", DOCTOR)
    example = sentence("doctor", DOCTOR, input_ids=first.input_ids[::-1].copy())
    plant = weight_between({"doctor": {(5, 4): 0.4, (0, 4): 0.8}})
    found = run({"cls_attention": {}}, examples=[example], plant=plant)["cls_attention"]
    np.testing.assert_allclose(found.attention.sel(feature="noun"), 0.4, atol=1e-12)


def test_an_input_without_cls_is_left_out_and_a_model_without_it_gets_nothing() -> None:
    first, second = sentence("doctor", DOCTOR), sentence("other", DOCTOR)
    bare = sentence("other", DOCTOR, input_ids=np.maximum(second.input_ids, STOP + 2))
    plant = weight_between({"doctor": {(0, 4): 0.4}, "other": {(0, 4): 0.8}})
    found = run({"cls_attention": {}}, examples=[first, bare], plant=plant)["cls_attention"]
    np.testing.assert_allclose(found.attention.sel(feature="noun"), 0.4, atol=1e-12)
    assert found["count"].sel(feature="noun") == 1
    plain = Vocabulary(cls=None, sep=None, punctuation=(STOP, COMMA))
    none = run({"cls_attention": {}}, examples=sentences(), vocabulary=plain, special={})
    assert np.isnan(none["cls_attention"].attention).all()
    assert (none["cls_attention"]["count"] == 0).all()


@pytest.mark.parametrize("options", [{"measure": "norm"}, {"language": "English"}])
def test_an_unknown_option_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="wanted one of"):
        run({"cls_attention": options}, examples=sentences())
