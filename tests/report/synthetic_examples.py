"""Which kept inputs make heads easy to tell apart, without a model?

`add_inputs` puts token-level maps beside the word-level ones of `synthetic_language`: each sentence
between [CLS] and [SEP], one token per word but the first, which has two, and a pair of texts.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

PAIR = [
    "[CLS]",
    "who",
    "wound",
    "it",
    "?",
    "[SEP]",
    "the",
    "keeper",
    ",",
    "at",
    "dawn",
    ".",
    "[SEP]",
]


def add_inputs(tree: xr.DataTree, *, seed: int = 0, pair: list[str] | None = None) -> xr.DataTree:
    """A copy of `tree`, which has the group `examples`, with token-level inputs in that group.

    pair  tokens of the last input; those in brackets are special, the second [SEP] closes
    """
    old = tree["examples"].to_dataset()
    rng = np.random.default_rng(seed)
    rows = [_row(old, at) for at in range(old.sizes["example"])] + [_pair_row(pair or PAIR)]
    longest = max(len(row["token_text"]) for row in rows)
    grid = (old.sizes["layer"], old.sizes["head"])
    maps = np.full((len(rows), *grid, longest, longest), np.nan, np.float32)
    norms = np.full((len(rows), *grid, longest), np.nan, np.float32)
    for at, row in enumerate(rows):
        n = len(row["token_text"])
        maps[at, :, :, :n, :n] = rng.dirichlet(np.full(n, 0.3), (*grid, n))
        norms[at, :, :, :n] = rng.uniform(0.2, 2, (*grid, n))
    by_token = ("input", "token")
    columns = {
        name: (by_token, np.array([_filled(row[name], longest) for row in rows]))
        for name in rows[0]
    }
    names = [*old["example"].values, "pair"]
    grown = old.assign(
        token_attention=(("input", "layer", "head", "token", "token_other"), maps),
        value_norm=(("input", "layer", "head", "token"), norms),
    ).assign_coords({**columns, "input": names})
    own = {str(name): child.to_dataset() for name, child in tree.children.items()}
    whole = xr.DataTree.from_dict(own | {"examples": grown})
    whole.attrs = dict(tree.attrs)
    return whole


def _row(old, at):
    """The columns of a sentence."""
    words = [
        str(word)
        for word, head in zip(old["text"].values[at], old["head_word"].values[at], strict=True)
        if head > -2
    ]
    cut = max(len(words[0]) // 2, 1)
    pieces = [words[0][:cut], f"##{words[0][cut:]}", *words[1:]]
    index = [-1, 0, *range(len(words)), -1]
    return {
        "token_text": ["[CLS]", *pieces, "[SEP]"],
        "word_text": ["" if word < 0 else f"{words[word]} " for word in index],
        "special": [int(word < 0) for word in index],
        "segment": [0] * len(index),
        "token_word": index,
        "token_count": [1] * len(index),
    }


def _pair_row(tokens):
    special = [int(t in ("[CLS]", "[SEP]")) for t in tokens]
    second = tokens.index("[SEP]") + 1
    return {
        "token_text": tokens,
        "word_text": [""] * len(tokens),
        "special": special,
        "segment": [int(at >= second) for at in range(len(tokens))],
        "token_word": [-1] * len(tokens),
        "token_count": [1] * len(tokens),
    }


def _filled(row, longest):
    """The row up to the longest: '' for texts, 0 for numbers."""
    return [*row, *[type(row[0])()] * (longest - len(row))]
