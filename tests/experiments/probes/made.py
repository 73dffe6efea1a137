"""What do a tiny model, treebanks that it can read, and maps that hold the gold tree look like?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headscope.corpus.encoder import Encoder
from headscope.experiments.probes.trees import TreebankSplit, TreeSentence, read_split
from headscope.model.model import Model, load
from tasks.made import checkpoint

WORDS = ("the", "a", "b", "cat", "cats", ",")
VECTORS = "the 0.1 0.2 0.3\na 1 0 0\nb 0 1 0\ncat 0 0 1\ncats 0 0.5 1\n"


def tiny(folder: Path) -> Model:
    return load(str(checkpoint(folder / "model")))


def heads_of(n: int, rng: np.random.Generator) -> list[int]:
    """[word] 1-based heads of a random tree, 0 for its root."""
    order = rng.permutation(n)
    heads = [0] * n
    for at, word in enumerate(order[1:], start=1):
        heads[word] = int(order[rng.integers(at)]) + 1
    return heads


def rows(forms: list[str], heads: list[int], relations: list[str] | None = None) -> str:
    relations = relations or [
        "root" if h == 0 else "punct" if f in ".," else "dep"
        for f, h in zip(forms, heads, strict=True)
    ]
    columns = zip(forms, heads, relations, strict=True)
    lines = [
        f"{at}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t_"
        for at, (form, head, relation) in enumerate(columns, start=1)
    ]
    return "\n".join(lines) + "\n\n"


def treebank(path: Path, count: int, *, seed: int = 0, words: tuple[int, int] = (2, 9)) -> Path:
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(count):
        n = int(rng.integers(*words))
        blocks.append(rows([str(w) for w in rng.choice(WORDS, n)], heads_of(n, rng)))
    path.write_text("".join(blocks), "utf-8")
    return path


def encoder(model: Model, **options) -> Encoder:
    return Encoder(
        model.tokenizer, model_limit=model.limit, has_segments=model.has_segments, **options
    )


def split_of(model: Model, path: Path, **options) -> TreebankSplit:
    return read_split("test", [path], encoder(model, **options))


def gold_maps(model: Model, pieces: str):
    """In place of `extract.attention_of`: one unit attends to the gold head, the others evenly."""
    units = model.shape.layers * model.shape.heads

    def extract(sentences: list[TreeSentence]) -> list[np.ndarray]:
        return [gold_map(sentence.head, units) for sentence in sentences]

    return extract


def gold_map(head: np.ndarray, units: int) -> np.ndarray:
    side = len(head) + 2
    maps = np.full((side, side, units), 1 / side, np.float16)
    maps[..., 1] = 0
    maps[np.arange(1, side - 1), head, 1] = 1  # ROOT is the first special token
    return maps
