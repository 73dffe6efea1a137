"""Where do the families keep the modules around attention? A table; one row per layout.

Paths are relative to the attention module: "." is the module itself, "^" its parent, so
"^.output.dense" is the child `output.dense` of the parent. To add a family, add a row, and a tiny
model of it to `tests/families/tiny.py`: the tests there do the rest.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """One way to arrange an attention layer.

    attention   the attention module's class names end with one of these
    projection  the output projection W_O
    residual    the module whose input is the residual stream that attention is added to;
                None where something else is done to attention before it is added
    norm        the LayerNorm of attention plus residual; None where the norm comes first;
                "{name}" stands for the attention module's own name
    value       the value projection, for the fallback; None on the registry
    """

    attention: tuple[str, ...]
    projection: str
    residual: str | None = None
    norm: str | None = None
    value: str | None = None


_BERT = ("Bert", "Roberta", "XLMRoberta", "Camembert", "Electra", "XLMRobertaXL")

LAYOUTS: tuple[Layout, ...] = (
    # BERT and its kin: attention.self inside attention, the norm inside attention.output
    Layout(
        tuple(f"{name}{kind}Attention" for name in _BERT for kind in ("Self", "Cross")),
        projection="^.output.dense",
        residual="^",
        norm="^.output.LayerNorm",
    ),
    Layout(("DistilBertSelfAttention",), "out_lin", residual=".", norm="^.sa_layer_norm"),
    Layout(("AlbertAttention",), "dense", residual=".", norm="LayerNorm"),
    Layout(("ModernBertAttention",), "Wo", residual="^.attn_norm"),
    # decoders with the norm before attention
    Layout(("GPT2Attention",), "c_proj", residual="^.ln_1"),
    Layout(("GPTNeoXAttention",), "dense", residual="^.input_layernorm"),
    Layout(("Gemma2Attention", "Gemma3Attention"), "o_proj"),  # attention is normed, then added
    Layout(
        (
            "LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention",
            "GemmaAttention", "Phi3Attention", "MixtralAttention", "SmolLM3Attention",
        ),
        "o_proj",
        residual="^.input_layernorm",
    ),
    # encoder-decoder
    Layout(
        ("BartAttention", "MarianAttention"), "out_proj", residual=".", norm="^.{name}_layer_norm"
    ),
    Layout(("T5Attention", "MT5Attention", "UMT5Attention"), "o", residual="^.layer_norm"),
    # off the registry
    Layout(
        ("DisentangledSelfAttention",),
        projection="^.output.dense",
        residual="^",
        norm="^.output.LayerNorm",
        value="value_proj",
    ),
    Layout(("MPNetSelfAttention",), "o", residual="^", norm="^.LayerNorm", value="v"),
)
