"""Writes benchmark_circuits.json: what the benchmark's own code computes on our tiny decoders.

    PYTHONPATH=EAP-IG/src:MIB-circuit-track python tests/oracles/make_benchmark_circuits.py

EAP-IG is hannamw/EAP-IG (graph.py of 4fad6c6, attribute.py and utils.py of 62f83cd, evaluate.py and
attribute_node.py of 81770db), with "cuda" replaced by the model's device; MIB-circuit-track is its
evaluation.py (gsarti/MIB-circuit-track 8dfc50c). Both take a HookedTransformer, which
TransformerLens 3.8.0 was the last to have. All is in float64, and no weights are folded: that would
round them to float32, and changes nothing where nodes give what they give in another prompt.

Scores of edges: EAP; EAP-IG from the corrupted prompt (steps 0 … m - 1, as its code has them) for
m = 1 and m = 5. Scores of nodes: EAP-IG (steps 1 … m). Curves: faithfulness by share, CPR and CMD,
of nodes and edges by drawn importances, and of edges by EAP.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from experiments.circuits.decoders import network, pairs, words  # noqa: E402

LAYERS = {"GPT-2": "n_layer"}
CONVERT = {"GPT-2": "gpt2", "Llama": "llama", "Gemma2": "gemma"}
DEPTH, LENGTHS, PROMPTS, DRAWN, STEPS = 3, (7, 5, 9), 2, 5, 5
NOTHING_FOLDED = dict.fromkeys(
    ("fold_ln", "center_writing_weights", "center_unembed", "fold_value_biases"), False
)
# what the benchmark's models are called in TransformerLens, beside their size
ROTARY = {
    "ungroup_grouped_query_attention": True,
    "gated_mlp": True,
    "normalization_type": "RMS",
    "positional_embedding_type": "rotary",
    "rotary_adjacent_pairs": False,
    "rotary_base": 10_000,
    "final_rms": True,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "GPT-2": {
        "act_fn": "gelu_new",
        "d_mlp": 128,
        "normalization_type": "LN",
        "scale_attn_by_inverse_layer_idx": True,
    },
    "Llama": {"act_fn": "silu"},
    "Gemma2": {
        "act_fn": "gelu_pytorch_tanh",
        "attn_scale": 8**0.5,
        "attn_scores_soft_cap": 5.0,
        "output_logits_soft_cap": 30.0,
        "use_local_attn": True,
        "window_size": 4,
        "attn_types": ["local", "global", "local"],
        "use_normalization_before_and_after": True,
    },
}


def hooked(name: str) -> Any:
    """TransformerLens's model of our network, as the benchmark loads one."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig
    from transformer_lens.pretrained import weight_conversions

    made = network(name, exact=True, **{LAYERS.get(name, "num_hidden_layers"): DEPTH})
    own = made.config
    shape = {
        "n_layers": DEPTH,
        "d_model": own.hidden_size,
        "n_heads": own.num_attention_heads,
        "d_head": own.hidden_size // own.num_attention_heads,
        "d_vocab": own.vocab_size,
        "n_ctx": 64,
        "dtype": torch.float64,
        "device": "cpu",
    }
    kind = FAMILIES[name] if name == "GPT-2" else {**ROTARY, **FAMILIES[name]}
    if name != "GPT-2":
        shape |= {"d_mlp": own.intermediate_size, "n_key_value_heads": own.num_key_value_heads}
        shape |= {"eps": own.rms_norm_eps, "rotary_dim": shape["d_head"]}
    config = HookedTransformerConfig(**shape, **kind)
    model = HookedTransformer(config, tokenizer=words(), default_padding_side="right")
    convert = getattr(weight_conversions, f"convert_{CONVERT[name]}_weights")
    with patch.object(torch.Tensor, "float", torch.Tensor.double):  # else norms are rounded
        weights = convert(made, config)
    if name == "Gemma2":
        weights["embed.W_E"] = made.model.embed_tokens(torch.arange(own.vocab_size))
    model.load_and_process_state_dict(weights, **NOTHING_FOLDED)
    if name != "GPT-2":  # transformers computes angles in float32
        angles = made.model.rotary_emb(torch.zeros(1).double(), torch.arange(64)[None])
        for block in model.blocks:
            block.attn.rotary_cos, block.attn.rotary_sin = (angle[0] for angle in angles)
    for hook in ("use_split_qkv_input", "use_attn_result", "use_hook_mlp_in"):
        setattr(model.cfg, hook, True)
    model.to_tokens = lambda ids, **_: ids
    return model.eval()


def asked() -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Batches of one prompt: its tokens, those of the corrupted one, and the two answers."""

    def ids(text: str) -> torch.Tensor:
        return torch.tensor([words()(text)["input_ids"]])

    return [
        (ids(one.text), ids(one.corrupted), torch.cat([ids(one.answer), ids(one.wrong)], 1))
        for one in pairs(*LENGTHS, seed=PROMPTS)
    ]


def difference(logits: Any, _clean: Any, lengths: Any, label: Any, *, loss: bool) -> Any:
    """The logit difference of the benchmark's metrics.py: by prompt, or a loss."""
    last = logits[torch.arange(len(lengths)), lengths - 1]
    right, wrong = torch.gather(last, -1, label).T
    return -(right - wrong).mean() if loss else right - wrong


def numbers(name: str) -> dict[str, Any]:
    from eap import attribute_node
    from eap.attribute import get_scores_eap, get_scores_eap_ig
    from eap.graph import Graph
    from MIB_circuit_track.evaluation import evaluate_area_under_curve

    model, prompts = hooked(name), asked()
    loss, told = partial(difference, loss=True), partial(difference, loss=False)
    graph = Graph.from_model(model, node_scores=True)
    scores = {"eap": get_scores_eap(model, graph, prompts, loss)}
    for steps in (1, STEPS):
        scores[f"eap-ig-{steps}"] = get_scores_eap_ig(model, graph, prompts, loss, steps=steps)
    of_nodes = attribute_node.get_scores_eap_ig(model, graph, prompts, loss, steps=STEPS)
    draw = np.random.default_rng(DRAWN)
    nodes = draw.normal(size=graph.n_forward)
    nodes[0] = 9  # without the input all is as in the corrupted prompt
    edges = draw.normal(size=graph.scores.shape)
    edges[0] += 2
    curves: dict[str, Any] = {}
    for kind, level, by in (
        ("nodes", "node", nodes),
        ("edges", "edge", edges),
        ("edges by EAP", "edge", scores["eap"].numpy()),
    ):
        held = graph.nodes_scores if level == "node" else graph.scores
        held[:] = torch.as_tensor(by)
        for absolute in (False, True):
            _, cpr, cmd, _, faithful = evaluate_area_under_curve(
                model, graph, prompts, told, level=level, absolute=absolute, quiet=True
            )
            own = {"cpr": cpr, "cmd": cmd, "faithfulness": faithful}
            curves[f"{kind}, {'size' if absolute else 'score'}"] = own
    real = graph.real_edge_mask.numpy()
    return {
        "real": int(real.sum()),
        "scores": {one: own.numpy()[real].round(8).tolist() for one, own in scores.items()},
        "nodes": of_nodes.numpy().round(8).tolist(),
        "curves": curves,
    }


def main() -> None:
    made = {
        "versions": {name: version(name) for name in ("transformer_lens", "transformers", "torch")},
        "depth": DEPTH,
        "lengths": LENGTHS,
        "prompts": PROMPTS,
        "drawn": DRAWN,
        "steps": STEPS,
        "models": {name: numbers(name) for name in FAMILIES},
    }
    path = Path(__file__).with_name("benchmark_circuits.json")
    path.write_text(json.dumps(made) + "\n", "utf-8")


if __name__ == "__main__":
    main()
