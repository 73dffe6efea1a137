"""Writes circuit_scores.json: what TransformerLens computes on our tiny random decoders.

    python tests/oracles/make_circuit_scores.py   # with transformer_lens 4.3.0 beside our tests

Its detector's three kinds of heads on one repeated input, composition of all pairs of heads, and
the eigenvalues of W_E W_V W_O W_U, with the norms folded in and everything centred.
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

from experiments.circuits.decoders import network, words  # noqa: E402

NAMES = {"GPT-2": "gpt2", "Llama": "meta-llama/Llama-2-7b-hf"}
HALF = [17, 5, 80, 33, 42, 9, 61, 28]
IDS = [1, *HALF, *HALF]
KINDS = ("previous_token_head", "duplicate_token_head", "induction_head")


def numbers(name: str) -> dict[str, Any]:
    from transformer_lens.head_detector import detect_head
    from transformer_lens.model_bridge import TransformerBridge

    model = TransformerBridge.boot_transformers(
        NAMES[name], hf_model=network(name), tokenizer=words(), n_ctx=64
    )
    model.enable_compatibility_mode()
    model.to_tokens = lambda _: torch.tensor([IDS])
    with torch.no_grad():
        found = {kind: detect_head(model, "", kind).tolist() for kind in KINDS}
        circuit = model.W_E @ model.OV @ model.W_U
        values = circuit.eigenvalues
        found["copying"] = (values.sum(-1).real / values.abs().sum(-1)).tolist()
        for way in "QKV":
            found[way] = model.all_composition_scores(way).tolist()
    return found


def main() -> None:
    told = {
        "versions": {name: version(name) for name in ("transformer_lens", "transformers", "torch")},
        "ids": IDS,
        "models": {name: numbers(name) for name in NAMES},
    }
    path = Path(__file__).with_name("circuit_scores.json")
    path.write_text(json.dumps(told) + "\n", "utf-8")


if __name__ == "__main__":
    main()
