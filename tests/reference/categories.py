"""Which tokens are [CLS], [SEP], punctuation or other, and which segment does each belong to?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PUNCTUATION = (".", ",")  # exactly these two: Clark et al. (2019), section 3.2


def category_indicators(
    tokens: Sequence[str], *, cls_token: str = "[CLS]", sep_token: str = "[SEP]"
) -> dict[str, NDArray[np.bool_]]:
    """One boolean [token] per category: cls, sep, punctuation, other; each token is in one."""
    cls = np.array([token == cls_token for token in tokens])
    sep = np.array([token == sep_token for token in tokens])
    punctuation = np.array([token in PUNCTUATION for token in tokens])
    return {
        "cls": cls,
        "sep": sep,
        "punctuation": punctuation,
        "other": ~(cls | sep | punctuation),
    }


def segment_ids(
    tokens: Sequence[str], *, convention: str = "auto", sep_token: str = "[SEP]"
) -> NDArray[np.int64]:
    """Segment id of each token, [token].

    convention  "auto": 0 up to and including the first separator, then 1 (Kobayashi et al. 2020)
                "zeros": all 0 (the extraction script of Clark et al. 2019)
    """
    ids = np.zeros(len(tokens), dtype=np.int64)
    if convention == "auto" and sep_token in tokens:
        ids[list(tokens).index(sep_token) + 1 :] = 1
    return ids


def frequency_ranks(token_ids: Sequence[int], rank_of_id: dict[int, int]) -> NDArray[np.float64]:
    """Frequency rank of each token, [token]; an unlisted id ranks one after the last rank.

    rank_of_id  1 = the most frequent token of the pre-training corpus
    """
    unlisted = max(rank_of_id.values()) + 1
    return np.array([rank_of_id.get(int(i), unlisted) for i in token_ids], dtype=np.float64)
