"""A table of where each family keeps the modules around attention; one row per layout.

Paths are relative to the attention module: "." is the module itself, "^" its parent, so
"^.output.dense" is the child `output.dense` of the parent, and "^^" the parent's parent. To add a
family, add a row, and a tiny model of it to `tests/model/families/tiny.py`: the tests there do the
rest.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """One way to arrange an attention layer.

    attention   class names of the attention module (of the class itself or of a base), where they
                say too little with the name of their file before them
    projection  the output projection W_O
    residual    the module whose input is the residual stream that attention is added to;
                None where something else is done to attention before it is added
    norm        the LayerNorm of attention plus residual; None where the norm comes first;
                "{name}" stands for the attention module's own name
    final_norm  the LayerNorm that closes the layer, of feed-forward plus residual; None likewise
    value       the value projection, for the fallback; None on the registry
    returns     "weights", as most do; "scores" before softmax, padding already masked; "band": of
                a window around each query, after columns of the tokens that all attend to
    swapped     of "value" and "projection", those whose inputs and outputs are [token, example, …]
    when        the row holds only where this attribute, of the attention module or else of its
                configuration, has this value
    """

    attention: tuple[str, ...]
    projection: str | None
    residual: str | None = None
    norm: str | None = None
    final_norm: str | None = None
    value: str | None = None
    returns: str = "weights"
    swapped: tuple[str, ...] = ()
    when: tuple[str, object] | None = None


def _named(prefixes: str, suffixes: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{suffix}" for prefix in prefixes.split() for suffix in suffixes.split())


_BOTH = "SelfAttention CrossAttention"
_BERT = ("^.output.dense", "^", "^.output.LayerNorm", "^^.output.LayerNorm")
LAYOUTS: tuple[Layout, ...] = (  # in the order of the fields: projection, residual, the norms
    # BERT and its relatives: attention.self inside attention, the norm inside attention.output
    Layout(_named("Bert Roberta XLMRoberta Camembert Electra", _BOTH), *_BERT),
    Layout(_named("XLMRobertaXL RobertaPreLayerNorm", _BOTH), *_BERT[:2]),  # the norm comes first
    Layout(("DistilBertSelfAttention",), "out_lin", ".", "^.sa_layer_norm", "^.output_layer_norm"),
    Layout(("AlbertAttention",), "dense", ".", "LayerNorm", "^.full_layer_layer_norm"),
    Layout(("ModernBertAttention",), "Wo", "^.attn_norm"),
    # decoders with the norm before attention
    Layout(("GPT2Attention",), "c_proj", "^.ln_1", when=("is_cross_attention", False)),
    Layout(("GPT2Attention",), "c_proj", "^.ln_cross_attn", when=("is_cross_attention", True)),
    Layout(("GPTNeoXAttention",), "dense", "^.input_layernorm"),
    Layout(
        ("OPTAttention",),
        "out_proj",
        "^.self_attn_layer_norm",
        when=("do_layer_norm_before", True),
    ),
    Layout(
        ("OPTAttention",),
        "out_proj",
        ".",
        "^.self_attn_layer_norm",
        "^.final_layer_norm",
        when=("do_layer_norm_before", False),
    ),
    Layout(
        _named("Llama Mistral Qwen2 Qwen3 Gemma Phi3 Mixtral SmolLM3", "Attention"),
        "o_proj",
        "^.input_layernorm",
    ),
    Layout(("Gemma2Attention", "Gemma3Attention"), "o_proj"),  # attention is normed, then added
    # encoder-decoder: the norm after attention, or before it
    Layout(
        ("BartAttention", "MarianAttention"),
        "out_proj",
        ".",
        "^.{name}_layer_norm",
        "^.final_layer_norm",
    ),
    Layout(("MBartAttention", "PegasusAttention"), "out_proj", "^.{name}_layer_norm"),
    Layout(("T5Attention", "MT5Attention", "UMT5Attention"), "o", "^.layer_norm"),
    # off the registry
    Layout(("DisentangledSelfAttention",), *_BERT, value="value_proj"),
    Layout(("MPNetSelfAttention",), "o", "^", "^.LayerNorm", "^^.output.LayerNorm", value="v"),
    Layout(("SqueezeBertSelfAttention",), None, returns="scores"),
    Layout(("ProphetNetAttention",), "out_proj", value="value_proj", returns="scores"),
    Layout(
        ("LongformerSelfAttention",),
        "^.output.dense",
        value="value",
        returns="band",
        swapped=("value",),
    ),
    Layout(
        ("LEDEncoderSelfAttention",),
        "^.output",
        value="value",
        returns="band",
        swapped=("value",),
    ),
    Layout(
        ("modeling_fsmt.Attention",), "out_proj", value="v_proj", swapped=("value", "projection")
    ),
    Layout(("BigBirdPegasusSelfAttention",), "^.output", value="value"),  # its decoder is on it
)

# Where families that are not in the table usually keep W_O: for each ending of the attention
# class's name, in order. The instrument checks that it is given the mixed values as they are.
USUAL_PROJECTIONS: tuple[tuple[str, str], ...] = (
    *(
        ("Attention", name)
        for name in ("o_proj", "out_proj", "c_proj", "dense", "Wo", "wo", "o", "out_lin")
    ),
    ("SelfAttention", "^.output.dense"),
    ("CrossAttention", "^.output.dense"),
)

# The same for the value projection, for families off the registry; the last ones give queries, keys
# and values side by side.
USUAL_VALUES = (
    "value",
    "v_proj",
    "v_lin",
    "v",
    "value_proj",
    "v_head",
    "c_attn",
    "query_key_value",
    "Wqkv",
    "qkv_proj",
    "in_proj",
)

# Attention that has no weight from each token to each token: refused, and why.
_SPARSE = "reads sampled blocks of tokens; load it with attention_type='original_full'"
NOT_WHOLE: dict[str, str] = {
    "BigBirdBlockSparseAttention": _SPARSE,
    "BigBirdPegasusBlockSparseAttention": _SPARSE,
    "CanineSelfAttention": "reads characters in chunks, and molecules of several characters",
    "FunnelRelMultiheadAttention": "pools tokens from block to block",
    "LongT5LocalAttention": "reads blocks of tokens",
    "LongT5TransientGlobalAttention": "reads blocks of tokens",
    "LocalSelfAttention": "reads chunks of tokens",
    "LSHSelfAttention": "reads hashed chunks of tokens",
    "MraSelfAttention": "approximates its map at several resolutions, and returns none",
    "NystromformerSelfAttention": "approximates its map by landmarks",
    "PegasusXGlobalLocalAttention": "reads blocks of tokens",
    "RwkvSelfAttention": "is a recurrence, not attention",
    "YosoSelfAttention": "hashes tokens instead of weighing them",
}
