"""Runs over inputs that are read without whole maps: the same numbers, and what is said of them."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaModel

import headscope as hs
from headscope.errors import InputError
from headscope.report.run_facts import facts
from model.families.tiny import sharpened
from model.families.tokenizers_made import wordpiece

TEXT = "the cat sat. a cat, b the a b cats. b a the, a cat cats. " * 3
CORPUS = [TEXT, "the a b cats. " * 9, "b a the, a cat."]
WAYS = (
    "surface",
    "entropy",
    "norms",
    "mixing",
    "distance",
    "sinks",
    "divergence",
    "patterns",
    "examples",
    "flow",
    "neurons",
)


@pytest.fixture(scope="module")
def decoder():
    torch.manual_seed(0)
    tokenizer = wordpiece()
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), **shape, **heads)
    return hs.load(sharpened(LlamaModel(config)).eval(), tokenizer=tokenizer)


def made(model, **more):
    return hs.atlas(model, CORPUS, control="none", max_length=48, **more)


def test_a_run_says_the_same_however_its_inputs_are_read(decoder, monkeypatch):
    """Sums, rows and chosen pairs; and, in a decoder, the maps of the first tokens."""
    monkeypatch.setattr("headscope.analyses.divergence.measure.SAMPLED", (48, 48))  # all queries
    whole, long = (made(decoder, analyses=WAYS, whole_maps=n) for n in (48, 8))
    for name in WAYS:
        wanted, found = whole[name], long[name]
        assert set(wanted) == set(found)
        for each in wanted.data_vars:
            one, other = wanted[each].values, found[each].values
            if one.dtype.kind == "f":
                np.testing.assert_allclose(
                    other, one, rtol=1e-4, atol=2e-5, err_msg=f"{name}.{each}"
                )
            else:
                np.testing.assert_array_equal(other, one, err_msg=f"{name}.{each}")
    said = long.manifest["long"]
    assert said.startswith("inputs of more than 8 tokens (up to 48)")
    assert said.endswith("examples, flow, neurons, patterns: the first 512 tokens of these alone")
    assert [fact.value for fact in facts(long.tree, long.manifest) if fact.label == "Long inputs"]
    assert "long" not in whole.manifest


def test_divergence_of_drawn_queries_is_right_in_the_mean(decoder, monkeypatch):
    """Over many seeds, to four standard errors of their spread."""
    monkeypatch.setattr("headscope.analyses.divergence.measure.SAMPLED", (4, 4))
    asked = {"analyses": ("divergence",), "limit": 1}
    upper = np.triu_indices(8, 1)
    wanted = made(decoder, **asked)["divergence"].js.values[upper]
    drawn = np.stack([
        made(decoder, **asked, whole_maps=8, seed=seed)["divergence"].js.values[upper]
        for seed in range(24)
    ])  # fmt: skip
    error = drawn.std(0, ddof=1) / len(drawn) ** 0.5
    assert (error > 0).all()
    assert np.abs(drawn.mean(0) - wanted).max() < 4 * error.max()


def test_what_needs_whole_maps_is_left_out_of_an_encoder_and_said_so(tiny):
    """Its first tokens look at later ones too: their maps would not be whole."""
    run = made(tiny, whole_maps=8, limit=1)
    assert not {"patterns", "flow", "neurons", "examples"} & set(run)
    assert {"surface", "entropy", "norms", "divergence"} <= set(run)
    assert "flow, neurons, patterns: left out" in run.manifest["long"].replace("examples, ", "")
    with pytest.raises(InputError, match=r"patterns look at whole maps.*--whole-maps 48"):
        made(tiny, whole_maps=8, limit=1, analyses=("entropy", "patterns"))
