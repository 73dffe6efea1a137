"""What do the families look like when they are tiny, random, and attend sharply?

Freshly initialised attention is almost uniform and hides mistakes, and biases of 0 and norms of 1
hide more: here every weight is drawn anew, every bias and norm is perturbed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
import transformers as T
from transformers import PreTrainedModel

from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView

VOCABULARY = 90
LAYERS, HEADS, WIDTH = 2, 4, 32


@dataclass(frozen=True)
class Family:
    """How to make a tiny model of one family.

    config        the configuration's class and options
    on_registry   attention goes through transformers' registry
    residual      the layer view knows the residual stream that attention is added to
    post_norm     a LayerNorm follows attention plus residual
    """

    name: str
    options: dict[str, Any]
    model: str = ""
    on_registry: bool = True
    residual: bool = True
    post_norm: bool = False
    stacks: dict[str, int] = field(default_factory=lambda: {"encoder": LAYERS})

    def build(self, *, seed: int = 0, **changes: Any) -> PreTrainedModel:
        """A model in evaluation mode; `changes` go into its configuration."""
        options = {"attn_implementation": "eager", **_NO_DROPOUT, **self.options, **changes}
        config = getattr(T, f"{self.name}Config")(**options)
        network = getattr(T, f"{self.model or self.name}Model")(config)
        return sharpened(network, seed=seed).eval()

    @property
    def encoder_decoder(self) -> bool:
        return "cross" in self.stacks


_NO_DROPOUT = dict.fromkeys(
    [
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "dropout",
        "attention_dropout",
        "dropout_rate",
        "activation_dropout",
        "hidden_dropout",
        "embd_pdrop",
        "attn_pdrop",
        "resid_pdrop",
        "embedding_dropout",
        "mlp_dropout",
    ],
    0.0,
)
_BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
_GROUPED = {**_BERT, "num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
_BART = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "encoder_layers": LAYERS,
    "decoder_layers": 3,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "decoder_start_token_id": 2,
}
_T5 = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "d_kv": 8,
    "num_layers": LAYERS,
    "num_decoder_layers": 3,
    "num_heads": HEADS,
    "d_ff": 48,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
}
_OPT = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "word_embed_proj_dim": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "ffn_dim": 48,
    "max_position_embeddings": 64,
}
_DEBERTA = {
    **_BERT,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_buckets": 4,
    "max_relative_positions": 16,
    "position_biased_input": False,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
}
_DECODER = {"decoder": LAYERS}
_BOTH = {"encoder": LAYERS, "decoder": 3, "cross": 3}


def _post(name: str, options: dict[str, Any], **rest: Any) -> Family:
    return Family(name, options, post_norm=True, **rest)


def _decoder(name: str, options: dict[str, Any], **rest: Any) -> Family:
    return Family(name, options, stacks=_DECODER, **rest)


FAMILIES: dict[str, Family] = {
    "BERT": _post("Bert", _BERT),
    "BERT decoder": _post("Bert", {**_BERT, "is_decoder": True}, stacks=_DECODER),
    "RoBERTa": _post("Roberta", {**_BERT, "pad_token_id": 1}),
    "XLM-R": _post("XLMRoberta", {**_BERT, "pad_token_id": 1}),
    "XLM-R XL": Family("XLMRobertaXL", {**_BERT, "pad_token_id": 1}),
    "CamemBERT": _post("Camembert", {**_BERT, "pad_token_id": 1}),
    "DistilBERT": _post(
        "DistilBert",
        {
            "vocab_size": VOCABULARY,
            "dim": WIDTH,
            "n_layers": LAYERS,
            "n_heads": HEADS,
            "hidden_dim": 48,
            "max_position_embeddings": 64,
        },
    ),
    "ALBERT": _post("Albert", {**_BERT, "embedding_size": 16}),
    "ALBERT groups": _post("Albert", {**_BERT, "embedding_size": 16, "num_hidden_groups": 2}),
    "ELECTRA": _post("Electra", {**_BERT, "embedding_size": 16}),
    "ModernBERT": Family(
        "ModernBert",
        {
            **_BERT,
            "pad_token_id": 0,
            "global_attn_every_n_layers": 2,
            "local_attention": 4,
            "num_hidden_layers": 3,
            "attention_bias": True,
        },
        stacks={"encoder": 3},
    ),
    "GPT-2": _decoder(
        "GPT2",
        {
            "vocab_size": VOCABULARY,
            "n_embd": WIDTH,
            "n_layer": LAYERS,
            "n_head": HEADS,
            "n_positions": 64,
            "scale_attn_by_inverse_layer_idx": True,
        },
    ),
    "GPT-NeoX": _decoder("GPTNeoX", _BERT),
    "OPT": _decoder("OPT", _OPT),
    "OPT post-norm": _decoder("OPT", {**_OPT, "do_layer_norm_before": False}, post_norm=True),
    "Llama": _decoder("Llama", _GROUPED),
    "Mistral": _decoder("Mistral", {**_GROUPED, "sliding_window": 4}),
    "Qwen2": _decoder("Qwen2", _GROUPED),
    "Qwen3": _decoder("Qwen3", _GROUPED),
    "Gemma": _decoder("Gemma", _GROUPED),
    "Gemma2": _decoder(
        "Gemma2",
        {
            **_GROUPED,
            "sliding_window": 4,
            "query_pre_attn_scalar": 8,
            "attn_logit_softcapping": 5.0,
        },
        residual=False,
    ),
    "Gemma3": _decoder(
        "Gemma3Text",
        {
            **_GROUPED,
            "sliding_window": 4,
            "query_pre_attn_scalar": 8,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        residual=False,
    ),
    "Phi3": _decoder("Phi3", {**_GROUPED, "original_max_position_embeddings": 64}),
    "SmolLM3": _decoder("SmolLM3", _GROUPED),
    "T5": Family("T5", _T5, stacks=_BOTH),
    "mT5": Family("MT5", _T5, stacks=_BOTH),
    "BART": _post("Bart", _BART, stacks=_BOTH),
    "mBART": Family("MBart", _BART, stacks=_BOTH),
    "Pegasus": Family("Pegasus", _BART, stacks=_BOTH),
    "Marian": _post("Marian", {**_BART, "decoder_vocab_size": VOCABULARY}, stacks=_BOTH),
    "MPNet": _post("MPNet", {**_BERT, "pad_token_id": 1}, on_registry=False),
    "DeBERTa v2": _post("DebertaV2", _DEBERTA, on_registry=False),
}

# Families without a weight from each token to each token: refused by name.
REFUSED: dict[str, Family] = {
    "BigBird sparse": Family("BigBird", {**_BERT, "attention_type": "block_sparse"}),
    "Funnel": Family(
        "Funnel",
        {
            "vocab_size": VOCABULARY,
            "block_sizes": [1, 1],
            "d_model": WIDTH,
            "n_head": HEADS,
            "d_head": 8,
            "d_inner": 48,
        },
    ),
    "YOSO": Family("Yoso", _BERT),
    "Nystromformer": Family("Nystromformer", _BERT),
}


# Families on the registry but in no table: their projection is guessed, and checked as it runs.
UNLISTED: dict[str, Family] = {
    "ERNIE": Family("Ernie", _BERT),
    "OLMo 2": _decoder("Olmo2", _GROUPED),
    "Cohere": _decoder("Cohere", _GROUPED),
    "Starcoder 2": _decoder("Starcoder2", _GROUPED),
    "BitNet": _decoder("BitNet", _GROUPED),  # norms the mixed values before it projects them
}


@cache
def tiny(name: str) -> PreTrainedModel:
    """The one shared tiny model of a family; tests leave it as it was."""
    return FAMILIES[name].build()


def make(name: str) -> Callable[..., PreTrainedModel]:
    """The function that makes a fresh tiny model of a family."""
    return FAMILIES[name].build


def sharpened(network: PreTrainedModel, *, seed: int = 0) -> PreTrainedModel:
    """Draws all weights anew so that attention is sharp and no bias or norm is trivial."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in network.named_parameters():
        draw = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim > 1:
            parameter.data = draw * (1.0 if "embed" in name else 0.35)
        else:
            parameter.data = parameter.data + draw * 0.2
        if "q_norm" in name or "k_norm" in name:
            parameter.data = parameter.data + 1
    return network


def seen_by(
    network: PreTrainedModel, given: dict[str, torch.Tensor], **options: Any
) -> tuple[list[LayerView], torch.Tensor]:
    """All layers as an observer sees them, and the last hidden state."""
    views: list[LayerView] = []
    with torch.no_grad(), Instrument(network, observers=[views.append], **options):
        output = network(**given)
    return views, output.last_hidden_state


def inputs(name: str) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Three rows of 9, 6 and 2 real tokens, and the mask as bool [example, token]."""
    lengths = torch.tensor([9, 6, 2])
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(5, VOCABULARY, (3, 9), generator=generator)
    mask = torch.arange(9) < lengths[:, None]  # [example, token]
    given = {"input_ids": ids, "attention_mask": mask.long()}
    if FAMILIES[name].encoder_decoder:
        given["decoder_input_ids"] = torch.randint(5, VOCABULARY, (3, 4), generator=generator)
    return given, mask
