"""Rank tokens by frequency, in the corpus or from a file."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from headscope.errors import CorpusError

FEWEST_TYPES = 50  # ours: tokens of which a correlation says something
UNLIKE = 0.2  # ours: of ranks of other English text on a page of a treebank it is 0.5


def corpus_ranks(token_counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[vocabulary] frequency rank of every token id, 1 = most frequent; ties get a mean rank."""
    import pandas as pd  # scipy.stats would take half a second more to import

    return np.asarray(pd.Series(-token_counts).rank(method="average"), np.float64)


def unlike_counts(
    ranks: npt.NDArray[np.float64], token_counts: npt.NDArray[np.int64]
) -> tuple[str, ...]:
    """The note that ranks do not go with what the corpus counts; none where they may.

    Ranks of other text go with it, too: a token that is frequent anywhere is mostly so here.
    """
    there = np.flatnonzero(token_counts)
    if len(there) < FEWEST_TYPES:
        return ()
    ours, theirs = -token_counts[there], ranks[there]
    rho = 0.0
    if np.ptp(ours) and np.ptp(theirs):
        from scipy.stats import spearmanr

        rho = float(spearmanr(ours, theirs).statistic)
    if rho + 2 / np.sqrt(len(there) - 1) > UNLIKE:
        return ()
    return (
        f"the frequency ranks do not go with this corpus: over {len(there):,} tokens their rank "
        f"correlation with its own counts is {rho:.2f}; are they of this tokenizer's vocabulary?",
    )


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
