"""Tiny random models of transformers' families, with inputs, for `benchmarks.families`.

To add a family, add its name, the beginning of its classes' names and the options of its
configuration. Weights are drawn anew: fresh attention is almost uniform and hides mistakes.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import PreTrainedModel

V, LAYERS, HEADS, WIDTH = 90, 2, 4, 32  # V: size of the vocabulary
TOKENS, REAL = 12, 9  # of the longer and of the shorter input
NO_DROPOUT = dict.fromkeys(
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
        "layerdrop",
        "encoder_layerdrop",
        "decoder_layerdrop",
        "resid_dropout",
        "classifier_dropout",
    ],
    0.0,
)
BERT: dict[str, Any] = {
    "vocab_size": V,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
GROUPED = {**BERT, "num_key_value_heads": 2, "head_dim": 8}
SLIDING = {**GROUPED, "sliding_window": 4}
EXPERTS = {
    **GROUPED,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "n_routed_experts": 4,
}
GPT = {"vocab_size": V, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64}
XLM = {
    "vocab_size": V,
    "emb_dim": WIDTH,
    "n_layers": LAYERS,
    "n_heads": HEADS,
    "max_position_embeddings": 64,
    "pad_index": 0,
}
BART: dict[str, Any] = {
    "vocab_size": V,
    "d_model": WIDTH,
    "encoder_layers": LAYERS,
    "decoder_layers": 3,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "decoder_start_token_id": 2,
    "eos_token_id": 2,
}
T5 = {
    "vocab_size": V,
    "d_model": WIDTH,
    "d_kv": 8,
    "num_layers": LAYERS,
    "num_decoder_layers": 3,
    "num_heads": HEADS,
    "d_ff": 48,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
}
VIT: dict[str, Any] = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "image_size": 16,
    "patch_size": 4,
    "num_channels": 3,
}
DEBERTA = {
    **BERT,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "max_relative_positions": 16,
    "position_biased_input": False,
}
LATENT = {
    **BERT, "num_key_value_heads": 4, "kv_lora_rank": 8, "q_lora_rank": 8, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 4, "moe_intermediate_size": 24,
    "first_k_dense_replace": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "n_shared_experts": 1,
}  # fmt: skip
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "BERT": ("Bert", BERT),
    "RoBERTa": ("Roberta", BERT),
    "XLM-RoBERTa": ("XLMRoberta", BERT),
    "CamemBERT": ("Camembert", BERT),
    "DistilBERT": (
        "DistilBert",
        {"vocab_size": V, "dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 48},
    ),
    "ALBERT": ("Albert", {**BERT, "embedding_size": 16}),
    "ELECTRA": ("Electra", {**BERT, "embedding_size": 16}),
    "ModernBERT": ("ModernBert", BERT),
    "XLM": ("XLM", XLM),
    "Flaubert": ("Flaubert", XLM),
    "BigBird full": ("BigBird", {**BERT, "attention_type": "original_full"}),
    "BigBird sparse": (
        "BigBird",
        {
            **BERT,
            "attention_type": "block_sparse",
            "block_size": 4,
            "num_random_blocks": 1,
            "max_position_embeddings": 128,
        },
    ),
    "Longformer": ("Longformer", {**BERT, "attention_window": [4, 4]}),
    "XLNet": (
        "XLNet",
        {"vocab_size": V, "d_model": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "d_inner": 48},
    ),
    "Nystromformer": ("Nystromformer", {**BERT, "num_landmarks": 4, "segment_means_seq_len": 12}),
    "MobileBERT": (
        "MobileBert",
        {**BERT, "intra_bottleneck_size": 32, "embedding_size": 16, "true_hidden_size": 32},
    ),
    "SqueezeBERT": ("SqueezeBert", {**BERT, "embedding_size": WIDTH}),
    "Funnel": (
        "Funnel",
        {
            "vocab_size": V,
            "block_sizes": [1, 1],
            "d_model": WIDTH,
            "n_head": HEADS,
            "d_head": 8,
            "d_inner": 48,
        },
    ),
    "Reformer": (
        "Reformer",
        {
            "vocab_size": V,
            "hidden_size": WIDTH,
            "num_attention_heads": HEADS,
            "attention_head_size": 8,
            "attn_layers": ["local", "local"],
            "is_decoder": False,
            "local_attn_chunk_length": 4,
            "axial_pos_shape": [4, 3],
            "feed_forward_size": 48,
            "axial_pos_embds_dim": [16, 16],
            "max_position_embeddings": 12,
        },
    ),
    "DeBERTa v1": ("Deberta", DEBERTA),
    "DeBERTa v2": (
        "DebertaV2",
        {**DEBERTA, "position_buckets": 4, "norm_rel_ebd": "layer_norm", "share_att_key": True},
    ),
    "MPNet": ("MPNet", {**BERT, "pad_token_id": 1}),
    "RoFormer": ("RoFormer", {**BERT, "embedding_size": WIDTH}),
    "MegatronBERT": ("MegatronBert", BERT),
    "ESM": ("Esm", {**BERT, "mask_token_id": 5, "position_embedding_type": "rotary"}),
    "Splinter": ("Splinter", BERT),
    "LUKE": ("Luke", {**BERT, "entity_vocab_size": 10, "entity_emb_size": 8}),
    "CANINE": (
        "Canine",
        {
            **BERT,
            "num_hash_buckets": 16,
            "num_hash_functions": 2,
            "local_transformer_stride": 4,
            "upsampling_kernel_size": 4,
            "downsampling_rate": 4,
        },
    ),
    "data2vec text": ("Data2VecText", BERT),
    "ERNIE": ("Ernie", BERT),
    "I-BERT": ("IBert", BERT),
    "MRA": ("Mra", BERT),
    "NomicBERT": ("NomicBert", BERT),
    "LayoutLM": ("LayoutLM", BERT),
    "LiLT": ("Lilt", {**BERT, "hidden_size": 48}),
    "RemBERT": ("RemBert", {**BERT, "input_embedding_size": 16}),
    "ConvBERT": ("ConvBert", {**BERT, "embedding_size": WIDTH}),
    "FNet": ("FNet", {k: v for k, v in BERT.items() if k != "num_attention_heads"}),
    "YOSO": ("Yoso", BERT),
    "RoBERTa pre-norm": ("RobertaPreLayerNorm", BERT),
    "X-MOD": ("Xmod", {**BERT, "languages": ["en_XX"], "default_language": "en_XX"}),
    "BERT generation": ("BertGeneration", BERT),
    "EuroBERT": ("EuroBert", GROUPED),
}
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "ModernBERT decoder": ("ModernBertDecoder", BERT),
    "GPT-2": ("GPT2", GPT),
    "GPT-NeoX (Pythia)": ("GPTNeoX", BERT),
    "OPT": (
        "OPT",
        {
            "vocab_size": V,
            "hidden_size": WIDTH,
            "word_embed_proj_dim": WIDTH,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "ffn_dim": 48,
            "max_position_embeddings": 64,
        },
    ),
    "Llama (1 to 3, SmolLM)": ("Llama", GROUPED),
    "Mistral": ("Mistral", SLIDING),
    "Qwen2 (2.5)": ("Qwen2", GROUPED),
    "Qwen3": ("Qwen3", GROUPED),
    "Gemma": ("Gemma", GROUPED),
    "Gemma 2": ("Gemma2", SLIDING),
    "Gemma 3": ("Gemma3Text", SLIDING),
    "Phi-3": ("Phi3", GROUPED),
    "GPT-Neo": (
        "GPTNeo",
        {
            "vocab_size": V,
            "hidden_size": WIDTH,
            "num_layers": LAYERS,
            "num_heads": HEADS,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 64,
        },
    ),
    "GPT-1": ("OpenAIGPT", GPT),
    "CTRL": ("CTRL", {**GPT, "dff": 48}),
    "GPT-BigCode": ("GPTBigCode", GPT),
    "BLOOM": (
        "Bloom",
        {"vocab_size": V, "hidden_size": WIDTH, "n_layer": LAYERS, "n_head": HEADS},
    ),
    "Falcon": ("Falcon", {**BERT, "alibi": False}),
    "Falcon, ALiBi": ("Falcon", {**BERT, "alibi": True}),
    "MPT": (
        "Mpt",
        {
            "vocab_size": V,
            "d_model": WIDTH,
            "n_layers": LAYERS,
            "n_heads": HEADS,
            "max_seq_len": 64,
        },
    ),
    "GPT-J": ("GPTJ", {**GPT, "rotary_dim": 4}),
    "CodeGen": ("CodeGen", {**GPT, "rotary_dim": 4}),
    "StarCoder 2": ("Starcoder2", GROUPED),
    "OLMo": ("Olmo", GROUPED),
    "OLMo 2": ("Olmo2", GROUPED),
    "OLMo 3": ("Olmo3", SLIDING),
    "OLMoE": ("Olmoe", EXPERTS),
    "Cohere": ("Cohere", GROUPED),
    "Cohere 2": ("Cohere2", SLIDING),
    "DeepSeek-V2": ("DeepseekV2", LATENT),
    "DeepSeek-V3": ("DeepseekV3", LATENT),
    "Mixtral": ("Mixtral", EXPERTS),
    "Qwen2-MoE": ("Qwen2Moe", {**EXPERTS, "shared_expert_intermediate_size": 24}),
    "Qwen3-MoE": ("Qwen3Moe", EXPERTS),
    "Qwen3-Next": (
        "Qwen3Next",
        {
            **EXPERTS,
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "layer_types": ["linear_attention", "full_attention"],
            "shared_expert_intermediate_size": 24,
        },
    ),
    "Granite": ("Granite", GROUPED),
    "GraniteMoE": ("GraniteMoe", EXPERTS),
    "GLM": ("Glm", GROUPED),
    "GLM-4": ("Glm4", GROUPED),
    "Phi": ("Phi", {**BERT, "num_key_value_heads": 2}),
    "PhiMoE": ("Phimoe", EXPERTS),
    "StableLM": ("StableLm", {**BERT, "num_key_value_heads": 2}),
    "Nemotron": ("Nemotron", GROUPED),
    "Persimmon": ("Persimmon", BERT),
    "Llama 4": ("Llama4Text", {**EXPERTS, "intermediate_size_mlp": 48, "attention_chunk_size": 8}),
    "JetMoE": (
        "JetMoe",
        {
            **BERT,
            "num_key_value_heads": 2,
            "kv_channels": 8,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
        },
    ),
    "DiffLlama": ("DiffLlama", GROUPED),
    "ERNIE 4.5": ("Ernie4_5", GROUPED),
    "EXAONE 4": ("Exaone4", SLIDING),
    "gpt-oss": ("GptOss", {**EXPERTS, "sliding_window": 4}),
    "Arcee": ("Arcee", GROUPED),
    "Helium": ("Helium", GROUPED),
    "Apertus": ("Apertus", GROUPED),
    "Gemma 3n": (
        "Gemma3nText",
        {
            **SLIDING,
            "vocab_size_per_layer_input": V,
            "hidden_size_per_layer_input": 8,
            "laurel_rank": 4,
            "num_kv_shared_layers": 0,
            "altup_num_inputs": 2,
            "layer_types": ["sliding_attention", "full_attention"],
            "intermediate_size": [48, 48],
            "activation_sparsity_pattern": [0.0, 0.0],
        },
    ),
    "BitNet": ("BitNet", GROUPED),
    "VaultGemma": ("VaultGemma", {**SLIDING, "query_pre_attn_scalar": 8}),
}
HYBRIDS: dict[str, tuple[str, dict[str, Any]]] = {
    "MiniMax": ("MiniMax", {**EXPERTS, "block_size": 4}),
    "LFM2": ("Lfm2", {**GROUPED, "layer_types": ["conv", "full_attention"]}),
    "Jamba": (
        "Jamba",
        {
            **EXPERTS,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "use_mamba_kernels": False,
            "mamba_d_state": 4,
        },
    ),
    "Zamba": (
        "Zamba",
        {
            **BERT,
            "num_key_value_heads": 4,
            "use_mamba_kernels": False,
            "attention_head_dim": 16,
            "num_hidden_layers": 4,
            "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
        },
    ),
    "RecurrentGemma": (
        "RecurrentGemma",
        {
            **BERT,
            "num_hidden_layers": 3,
            "num_key_value_heads": 1,
            "lru_width": WIDTH,
            "attention_window_size": 8,
        },
    ),
    "Mamba": ("Mamba", {"vocab_size": V, "hidden_size": WIDTH, "num_hidden_layers": LAYERS}),
    "Mamba 2": (
        "Mamba2",
        {
            "vocab_size": V,
            "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS,
            "num_heads": 8,
            "head_dim": 8,
            "state_size": 8,
        },
    ),
    "RWKV": (
        "Rwkv",
        {
            "vocab_size": V,
            "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS,
            "attention_hidden_size": WIDTH,
        },
    ),
}
BOTH: dict[str, tuple[str, dict[str, Any]]] = {
    "T5": ("T5", T5),
    "BART": ("Bart", BART),
    "mBART": ("MBart", BART),
    "Marian": ("Marian", BART),
    "UMT5": ("UMT5", T5),
    "LongT5": ("LongT5", {**T5, "local_radius": 3, "encoder_attention_type": "local"}),
    "Switch": (
        "SwitchTransformers",
        {
            **T5,
            "num_experts": 2,
            "num_sparse_encoder_layers": 1,
            "num_sparse_decoder_layers": 1,
        },
    ),
    "LED": (
        "LED",
        {
            **{k: v for k, v in BART.items() if k != "max_position_embeddings"},
            "attention_window": [4, 4],
            "max_encoder_position_embeddings": 64,
            "max_decoder_position_embeddings": 64,
        },
    ),
    "Pegasus": ("Pegasus", BART),
    "PEGASUS-X": ("PegasusX", {**BART, "block_size": 4, "num_global_tokens": 2}),
    "Blenderbot small": ("BlenderbotSmall", BART),
    "Blenderbot": ("Blenderbot", BART),
    "M2M100": ("M2M100", BART),
    "NLLB-MoE": (
        "NllbMoe",
        {**BART, "num_experts": 2, "encoder_sparse_step": 2, "decoder_sparse_step": 2},
    ),
    "PLBart": ("PLBart", BART),
    "BigBird-Pegasus": ("BigBirdPegasus", {**BART, "attention_type": "original_full"}),
    "MVP": ("Mvp", BART),
    "ProphetNet": (
        "ProphetNet",
        {
            "vocab_size": V,
            "hidden_size": WIDTH,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "num_encoder_layers": LAYERS,
            "num_encoder_attention_heads": HEADS,
            "ngram": 2,
            "num_decoder_layers": LAYERS,
            "num_decoder_attention_heads": HEADS,
            "max_position_embeddings": 64,
        },
    ),
    "FSMT": (
        "FSMT",
        {
            **BART,
            "langs": ["a", "b"],
            "src_vocab_size": V,
            "tgt_vocab_size": V,
            "decoder_layers": LAYERS,
        },
    ),
}
OTHER: dict[str, tuple[str, dict[str, Any]]] = {
    "Whisper": (
        "Whisper",
        {
            **BART,
            "num_mel_bins": 8,
            "max_source_positions": 10,
            "max_target_positions": 20,
            "pad_token_id": 0,
        },
    ),
    "wav2vec 2": (
        "Wav2Vec2",
        {
            **{k: v for k, v in VIT.items() if "_size" not in k or k != "image_size"},
            "conv_dim": [8, 8],
            "conv_stride": [2, 2],
            "conv_kernel": [3, 3],
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2,
        },
    ),
    "ViT": ("ViT", VIT),
    "DeiT": ("DeiT", VIT),
    "BEiT": ("Beit", VIT),
    "DINOv2": ("Dinov2", VIT),
    "DINOv3": ("DINOv3ViT", VIT),
    "SigLIP vision": ("SiglipVision", VIT),
    "CLIP vision": ("CLIPVision", VIT),
    "CLIP text": ("CLIPText", BERT),
    "CLIP": ("CLIP", {"text_config": BERT, "vision_config": VIT, "projection_dim": 16}),
    "ViT-MAE": ("ViTMAE", {**VIT, "mask_ratio": 0.0}),
    "Swin": (
        "Swin",
        {
            "image_size": 16,
            "patch_size": 4,
            "embed_dim": 16,
            "depths": [1, 1],
            "num_heads": [2, 4],
            "window_size": 2,
        },
    ),
    "data2vec vision": ("Data2VecVision", VIT),
}
FAMILIES = {**ENCODERS, **DECODERS, **HYBRIDS, **BOTH, **OTHER}
_CLASSES = {"BertGeneration": "BertGenerationEncoder"}
_UNPADDED = ("Reformer", "Longformer", "LED", "BigBird sparse", "CANINE", "Mamba", "Mamba 2")
_WITHOUT_MASK = ("FNet", "RWKV")


def made(name: str) -> PreTrainedModel:
    """A tiny random model in evaluation mode that attends unevenly."""
    prefix, options = FAMILIES[name]
    config = getattr(transformers, f"{prefix}Config")(**NO_DROPOUT, **options)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    model: PreTrainedModel = getattr(transformers, _CLASSES.get(prefix, f"{prefix}Model"))(config)
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        draw = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim < 2:
            parameter.data += 0.2 * draw
        else:
            scale = 2 / parameter.shape[-1] ** 0.5 if parameter.ndim == 2 else 0.3
            parameter.data = scale * draw
    return model.eval()


def inputs(model: PreTrainedModel, name: str) -> dict[str, torch.Tensor]:
    """Two inputs for it, the second one shorter where the family can tell padding."""
    generator = torch.Generator().manual_seed(3)
    image = {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator)}
    ids = torch.randint(6, V, (2, 64 if name == "BigBird sparse" else TOKENS), generator=generator)
    if name == "Whisper":
        sound = torch.randn(2, 8, 20, generator=generator)
        return {"input_features": sound, "decoder_input_ids": ids[:, :6]}
    if name == "wav2vec 2":
        return {"input_values": torch.randn(2, 60, generator=generator)}
    if name == "ViT-MAE":
        return {**image, "noise": torch.rand(2, 16, generator=generator)}
    if model.main_input_name == "pixel_values":
        return image
    given = {"input_ids": ids}
    if name not in _WITHOUT_MASK:
        given["attention_mask"] = torch.ones_like(ids)
        if name not in _UNPADDED:
            given["attention_mask"][1, REAL:] = 0
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = ids[:, :7].clone()
    return {**given, **image} if name == "CLIP" else given
