"""Writes transformer_lens.json: what TransformerLens computes on our tiny random decoders.

    python tests/oracles/make_transformer_lens.py   # with transformer_lens 4.3.0 beside our tests

Direct logit attribution by its cache, with the norm folded in, and activation patching of every
head's output at all positions by its `patching`; the prompts are `decoders.pairs`.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from experiments.circuits.decoders import network, pairs, words  # noqa: E402

NAMES = {"GPT-2": "gpt2", "Llama": "meta-llama/Llama-2-7b-hf"}
LENGTHS, SEED = (6, 6, 6), 5


def ids(text: str) -> torch.Tensor:
    return torch.tensor([words()(text)["input_ids"]])


def bridge(name: str) -> Any:
    from transformer_lens.model_bridge import TransformerBridge

    made = TransformerBridge.boot_transformers(
        NAMES[name], hf_model=network(name), tokenizer=words(), n_ctx=64
    )
    # Ours keeps the value bias with its head, where TransformerLens would move it into b_O.
    made.enable_compatibility_mode(fold_value_biases=False)
    return made


def numbers(name: str) -> dict[str, Any]:
    from transformer_lens import patching

    model, direct, effects = bridge(name), [], []
    for prompt in pairs(*LENGTHS, seed=SEED):
        right, wrong = (int(ids(t)[0, 0]) for t in (prompt.answer, prompt.wrong))
        with torch.no_grad():
            logits, clean = model.run_with_cache(ids(prompt.text))
            corrupted, _ = model.run_with_cache(ids(prompt.corrupted))
            stack = clean.stack_head_results(layer=-1, pos_slice=-1)
            told = clean.logit_attrs(
                stack,
                tokens=torch.tensor([right]),
                incorrect_tokens=torch.tensor([wrong]),
                pos_slice=-1,
            )
        layers = model.cfg.n_layers
        direct.append(told.reshape(layers, -1).tolist())

        def metric(out: torch.Tensor, right: int = right, wrong: int = wrong) -> torch.Tensor:
            return out[0, -1, right] - out[0, -1, wrong]

        with torch.no_grad():
            after = patching.get_act_patch_attn_head_out_all_pos(
                model, ids(prompt.corrupted), clean, metric
            )
        effects.append(
            {
                "patched": after.tolist(),
                "clean": float(metric(logits)),
                "corrupted": float(metric(corrupted)),
            }
        )
    return {"direct": direct, "patching": effects}


def main() -> None:
    told = {
        "versions": {name: version(name) for name in ("transformer_lens", "transformers", "torch")},
        "lengths": LENGTHS,
        "seed": SEED,
        "models": {name: numbers(name) for name in NAMES},
    }
    path = Path(__file__).with_name("transformer_lens.json")
    path.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
