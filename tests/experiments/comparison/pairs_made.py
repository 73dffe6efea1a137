"""Which two tiny models are compared in tests, and on what?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

import headscope as hs
from headscope.corpus import Document, Passage, Word
from headscope.experiments.comparison.compare import compare
from headscope.model.checkpoint import quietly
from headscope.model.model import Model
from tasks.made import checkpoint, tokenizer

TEXTS = [
    "The cat a b . The cats , a b .",
    "A cat .",
    "b a the a , the cat b",
    "the cats . b , a a b .",
    ("a b the cat .", "the cats , b a"),
    "b b b , a cat . the cat a the cats . b",
    "a . b",
    ("the cat", "a cat . the b , b a the cats"),
]


def corpus() -> hs.corpus.MemoryCorpus:
    return hs.corpus.MemoryCorpus(TEXTS)


def base(folder: Path, *, dtype: str = "float32", **changes: Any) -> Model:
    return hs.load(checkpoint(folder / "base", **changes), dtype=dtype)


def perturbed(
    folder: Path, *, layers: tuple[int, ...] = (1,), size: float = 0.3, dtype: str = "float32"
) -> Model:
    """The base with noise on the parameters of some layers."""
    network: Any = base(folder).network
    draws = torch.Generator().manual_seed(5)
    for layer in layers:
        for parameter in network.encoder.layer[layer].parameters():
            parameter.data += size * torch.randn(parameter.shape, generator=draws)
    with quietly():
        network.save_pretrained(folder / "tuned")
        tokenizer().save_pretrained(folder / "tuned")
    return hs.load(folder / "tuned", dtype=dtype)


# --- a finished comparison ------------------------------------------------------------------

EVIL = "</script><img src=x onerror=alert(1)>"
TAGS = {"the": "DT", "a": "DT", "cat": "NN", "cats": "NNS", "b": "VBZ", ".": "."}


def tagged() -> hs.corpus.MemoryCorpus:
    """Sentences of tagged words, one to a document; the ids are hostile."""
    documents = []
    for at, text in enumerate(TEXTS * 3):
        forms = (text if isinstance(text, str) else " ".join(text)).replace(",", "the").split()
        turn = at // len(TEXTS)  # documents of equal content would count as one
        forms = forms[turn:] + forms[:turn]
        words = tuple(
            Word(form, upos="X", xpos=TAGS[form.lower()], head=place - 1, relation="nsubj")
            for place, form in enumerate(forms)
        )
        documents.append(Document(f"{EVIL} {at}", (Passage(f"{EVIL} {at}", words=words),)))
    return hs.corpus.MemoryCorpus(documents)


def compared(folder: Path, *, record: bool = True, **options: Any) -> hs.Run:
    """Four layers, the last of which changed most; with the record of a training, if asked."""
    layers = 4
    one = base(folder, num_hidden_layers=layers)
    network: Any = base(folder, num_hidden_layers=layers).network
    draws = torch.Generator().manual_seed(5)
    for layer, size in ((1, 0.02), (2, 0.05), (3, 0.6)):
        for parameter in network.encoder.layer[layer].parameters():
            parameter.data += size * torch.randn(parameter.shape, generator=draws)
    place = folder / "tuned <b>"
    with quietly():
        network.save_pretrained(place)
        tokenizer().save_pretrained(place)
    rows = [
        {"layer": at, "rate": 2e-5, "gradient_norm": 4.0 - at, "relative_change": 0.01 * (at + 1)}
        for at in range(layers)
    ]
    if record:
        (place / "finetuned.json").write_text(json.dumps({"layers": rows}))
    settings = hs.Settings(
        analyses=("surface", "entropy", "norms", "features"), replicates=100, **options
    )
    return compare(
        one,
        hs.load(place),
        tagged(),
        output=folder / "run",
        settings=settings,
        execution=hs.Execution(linears="stock", threads=1),
    )
