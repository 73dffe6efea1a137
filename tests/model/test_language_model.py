"""Losses of language models whose logits are computed in blocks."""

from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    AutoModelForCausalLM,
    BartConfig,
    CohereConfig,
    Gemma2Config,
    GPT2Config,
    OPTConfig,
    PreTrainedModel,
)

from headscope.model.instrument import Instrument
from headscope.model.language_model import ROWS, TokenLoss
from headscope.model.model import run_network

VOCABULARY = 97
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
OF_BART = {"d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 64}
CONFIGS = {
    "plain": GPT2Config(n_embd=32, n_layer=2, n_head=4),
    "capped": Gemma2Config(**SHAPE, head_dim=8, num_key_value_heads=2, final_logit_softcapping=0.5),
    "scaled": CohereConfig(**SHAPE, logit_scale=0.5),
    "narrow head": OPTConfig(**SHAPE, ffn_dim=64, word_embed_proj_dim=16),
    "layers deep inside": BartConfig(**OF_BART, is_decoder=True, is_encoder_decoder=False),
}
IDS = torch.from_numpy(np.random.default_rng(0).integers(5, VOCABULARY, (9, 21)))
ASKED = TokenLoss("next token", [np.arange(20)] * 9, [row[1:].numpy() for row in IDS])


def decoder(kind: str) -> PreTrainedModel:
    torch.manual_seed(0)
    config = CONFIGS[kind]
    config.vocab_size = VOCABULARY
    return AutoModelForCausalLM.from_config(config).eval()


class Largest(TorchDispatchMode):
    """Numbers in the largest tensor over the vocabulary that was made."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and made.shape[-1:] == (VOCABULARY,):
            self.numbers = max(self.numbers, made.numel())
        return made


@pytest.mark.parametrize("kind", CONFIGS)
def test_losses_in_blocks_are_those_of_all_logits(kind: str) -> None:
    network, rows, layers = decoder(kind), [7, 0, 3, 8, 1], []
    ids = IDS[rows]
    run = partial(run_network, network, ids, torch.ones_like(ids))
    look = Instrument(network, observers=[lambda view: layers.append(view.index)])
    with torch.inference_mode():
        logits = run().logits[:, :-1]
        with Largest() as largest:
            answer, losses = ASKED.read(network, run, rows, seen_by=look)
        after = run().logits[:, :-1]
    wanted = cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    np.testing.assert_allclose(losses, wanted, rtol=1e-6, atol=1e-6)
    assert len(wanted) > ROWS  # several blocks
    assert largest.numbers == ROWS * VOCABULARY
    assert answer.logits.shape == (1, 1, VOCABULARY)
    assert layers == [0, 1]  # they ran once
    torch.testing.assert_close(after, logits, rtol=0, atol=0)  # the network is as it was


@pytest.mark.parametrize("stem", [torch.nn.Identity(), None])
def test_a_network_that_hides_its_layers_is_read_at_once(stem: torch.nn.Module | None) -> None:
    network = decoder("plain")
    network.get_decoder = lambda: stem or network.lm_head  # which gives no states
    run = partial(run_network, network, IDS, torch.ones_like(IDS))
    with torch.inference_mode():
        logits = run().logits[:, :-1]
        _, losses = ASKED.read(network, run, range(9))
    wanted = cross_entropy(logits.flatten(0, 1), IDS[:, 1:].flatten(), reduction="none")
    np.testing.assert_allclose(losses, wanted, rtol=1e-6, atol=1e-6)


def test_a_mean_is_taken_over_the_positions_of_a_row() -> None:
    objective = TokenLoss("next token", [np.arange(2), np.arange(1)], [np.zeros(2), np.zeros(1)])
    means = objective.means(torch.tensor([1.0, 3.0, 5.0]), [0, 1])
    assert means.tolist() == [2.0, 5.0]
