"""One of the processes that share a tiny Llama: what does it find, and what does it refuse?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel
from transformers.distributed.configuration_utils import DistributedConfig

import headscope as hs
from headscope.errors import ModelError
from headscope.model.checkpoint import quietly
from headscope.model.instrument import Instrument
from headscope.model.model import forward
from model.families.tiny import make
from model.families.tokenizers_made import bytes_bpe


def write_model(folder: Path) -> None:
    with quietly():
        make("Llama")().save_pretrained(folder)
    template = ("<s> $A", "<s> $A $B")
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<|end|>"}
    bytes_bpe(template=template, **names).save_pretrained(folder)


def what_is_seen(model: hs.Model) -> dict[str, np.ndarray[Any, Any]]:
    """By name and layer: maps, norms and inner products of all heads, and the output."""
    found = {}

    def look(view: hs.plugins.LayerView) -> None:
        assert view.output is not None
        found[f"attention {view.index}"] = view.attention.numpy()
        found[f"norm {view.index}"] = view.value_norm.numpy()
        found[f"gram {view.index}"] = view.gram.numpy()
        found[f"output {view.index}"] = view.output[:, None].numpy()

    ids = model.tokenizer("a b. a, b a a b.", return_tensors="pt")["input_ids"]
    with Instrument(model.network, observers=[look]):
        forward(model.network, ids, torch.ones_like(ids))
    return found


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    model = hs.load(folder / "llama", tp_plan="auto")
    own = model.network.layers[0].self_attn.q_proj.weight.to_local()
    with quietly():
        split = AutoModel.from_pretrained(
            folder / "llama", distributed_config=DistributedConfig(tp_plan="auto")
        )
    refused = ""
    try:
        hs.load(split, tokenizer=model.tokenizer)
    except ModelError as error:
        refused = str(error)
    np.savez(
        folder / f"{os.environ['RANK']}.npz",
        heads=model.shape.heads,
        own_rows=len(own),
        refused=refused,
        **what_is_seen(model),
    )
    torch.distributed.destroy_process_group()
