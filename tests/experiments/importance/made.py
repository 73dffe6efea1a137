"""What does a tiny language model look like?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as T

from headscope.model.checkpoint import quietly
from model.families.tiny import sharpened
from model.families.tokenizers_made import wordpiece
from tasks.made import config


def language_model(folder: Path) -> Path:
    """A BERT with its masked-language-model head, and its tokenizer."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network: Any = sharpened(T.BertForMaskedLM(config()))
    with quietly():
        network.save_pretrained(folder)
        wordpiece().save_pretrained(folder)
    return folder
