"""Rank tokens by frequency, in the corpus or from a file."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from headscope.errors import CorpusError


def corpus_ranks(token_counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[vocabulary] frequency rank of every token id, 1 = most frequent; ties get a mean rank."""
    import pandas as pd  # scipy.stats would take half a second more to import

    return np.asarray(pd.Series(-token_counts).rank(method="average"), np.float64)


def read_ranks(path: Path, vocabulary: int) -> npt.NDArray[np.float64]:
    """[vocabulary] ranks from a file of lines "rank count token-id"; unlisted ids: last rank + 1.

    raises  CorpusError with file and line
    """
    rank_of: dict[int, int] = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot read frequency ranks from {path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if len(fields) != 3 or not all(f.isdecimal() and len(f) < 19 for f in fields):
            raise CorpusError(f"{path}:{number}: {line[:60]!r}; wanted 'rank count token-id'")
        rank_of[int(fields[2])] = int(fields[0])
    if not rank_of:
        raise CorpusError(f"{path} is empty; wanted lines 'rank count token-id'")
    ranks = np.full(vocabulary, max(rank_of.values()) + 1.0)
    for token, rank in rank_of.items():
        if token < vocabulary:
            ranks[token] = rank
    return ranks
