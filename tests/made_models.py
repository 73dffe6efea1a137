"""Which small model do the tests run where the demo would only take longer?"""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertConfig, BertModel

from headscope.model.checkpoint import quietly
from headscope.model.request import place_of

LAYERS, HEADS, NEURONS = 2, 4, 32


def small_bert(folder: Path, layers: int = LAYERS, *, seed: int = 0) -> Path:
    """A BERT with random weights and sharp attention, and the demo's tokenizer; saved."""
    with quietly():
        tokenizer = AutoTokenizer.from_pretrained(place_of("demo"))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=HEADS * NEURONS,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        intermediate_size=48,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = BertModel(config)
        for parameter in network.parameters():  # biases that are not 0, attention that is sharp
            parameter.data += 0.3 * torch.randn(parameter.shape)
    with quietly():
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def nudged(model: Path, folder: Path) -> Path:
    """A copy of a model that differs in one row of weights, by next to nothing; saved."""
    shutil.copytree(model, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors[min(tensors)].view(-1)[0] += 1e-6
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder
