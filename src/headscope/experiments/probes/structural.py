"""The structural probe on hidden states: a baseline for the probes on attention.

Hewitt and Manning (2019), *A Structural Probe for Finding Syntax in Word Representations*: a matrix
B under which squared distances ‖B(h_i − h_j)‖² come near the number of arcs between two words, and
another under which ‖Bh_i‖² comes near a word's depth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import rankdata
from torch import nn

from headscope.core.accumulators import Float64, correlation
from headscope.experiments.probes.resumable_training import LearningSchedule, drawn_with, train
from headscope.experiments.probes.trees import ROOT, TreeSentence, undirected_right
from headscope.experiments.probes.word_features import Features
from headscope.run.shard_files import State

BEGIN = 0.05  # B is drawn from ±this
BATCH, RATE, PLATEAU = 20, 1e-3, 0.1

Read = Callable[[int], Features]  # hidden states [word, neuron] of a sentence by its number


@dataclass(frozen=True)
class HiddenStates:
    """The sentences of a split, and the files of their hidden states."""

    sentences: Sequence[TreeSentence]
    read: Read

    def states(self, at: int) -> torch.Tensor:
        """[word, neuron] of a sentence."""
        return torch.from_numpy(self.read(at).astype(np.float32))


class Projection(nn.Module):
    """The matrix B of the structural probe, of full rank unless it has fewer rows.

    weight  [neuron, rank]
    """

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, rank).uniform_(-BEGIN, BEGIN))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """[word, rank] from [word, neuron]."""
        return states @ self.weight


def squared_distances(projected: torch.Tensor) -> torch.Tensor:
    """[word, word] ‖B(h_i − h_j)‖² from Bh [word, rank]."""
    norms = squared_norms(projected)
    return norms[:, None] + norms[None, :] - 2 * projected @ projected.T


def squared_norms(projected: torch.Tensor) -> torch.Tensor:
    """[word] ‖Bh_i‖² from Bh [word, rank]."""
    return projected.square().sum(-1)


PREDICTED = {"distance": squared_distances, "depth": squared_norms}


def loss_of(
    probe: Projection, data: HiddenStates, measure: str, items: Sequence[int]
) -> torch.Tensor:
    """Mean over sentences of the L1 loss: of distances divided by n², of depths by n."""
    states = [data.states(at) for at in items]
    projected = probe(torch.cat(states)).split([len(s) for s in states])
    losses = []
    for at, one in zip(items, projected, strict=True):
        gold = torch.from_numpy(getattr(data.sentences[at], measure))
        losses.append((PREDICTED[measure](one) - gold).abs().mean())
    return torch.stack(losses).mean()


def structural_scores(
    data: tuple[HiddenStates, HiddenStates, HiddenStates],
    *,
    rank: int | None,
    epochs: int,
    seed: int,
    state: Path,
    key: str,
    progress: Callable[[int], None],
) -> State:
    """Trains both probes of one layer and scores them on every test sentence.

    data     train, dev and test
    rank     of B; None: as many as a vector has numbers
    returns  see `judged`
    """
    width = data[0].read(0).shape[1]
    schedule = LearningSchedule(epochs, BATCH, RATE, plateau=PLATEAU, seed=seed)
    probes = {}
    for measure in PREDICTED:
        with drawn_with(seed, "structural", measure):
            probe = probes[measure] = Projection(width, rank or width)
        train(
            probe,
            (partial(loss_of, probe, data[0], measure), partial(loss_of, probe, data[1], measure)),
            (len(data[0].sentences), len(data[1].sentences)),
            schedule,
            state=state.with_suffix(f".{measure}"),
            key=f"{key} {measure}",
            progress=progress,
        )
    return judged(probes, data[2])


def judged(probes: dict[str, Projection], data: HiddenStates) -> State:
    """Predictions of both probes for every sentence.

    returns  edges [sentence] arcs of the gold tree that the minimum spanning tree has; distance and
             depth [sentence] Spearman's ρ of predicted and true ones, over the words' mean; root
             [sentence] whether the word of least depth is the root; NaN where that cannot be asked
    """
    rows = []
    for at, sentence in enumerate(data.sentences):
        with torch.no_grad():
            distance, depth = (
                of(probes[measure](data.states(at))).numpy().astype(np.float64)
                for measure, of in PREDICTED.items()
            )
        rows.append(
            (
                undirected_right(-distance, sentence),
                mean_spearman(distance, sentence.distance),
                mean_spearman(depth[None], sentence.depth[None]),
                finds_root(depth, sentence),
            )
        )
    table = np.array(rows, np.float64)  # [sentence, 4]
    return dict(zip(("edges", "distance", "depth", "root"), table.T.copy(), strict=True))


def mean_spearman(estimated: Float64, gold: npt.NDArray[np.integer]) -> float:
    """Mean over rows of Spearman's ρ; NaN where no row has two different values on each side."""
    rho = correlation(rankdata(estimated, axis=1), rankdata(gold, axis=1))  # [row]
    there = np.isfinite(rho)
    return float(rho[there].mean()) if there.any() else float("nan")


def finds_root(depth: Float64, sentence: TreeSentence) -> float:
    """1.0 if the word of least depth is a root, punctuation left out; NaN without a root there."""
    words = np.flatnonzero(sentence.spanned)
    is_root = sentence.head[words] == ROOT
    return float(is_root[np.argmin(depth[words])]) if is_root.any() else float("nan")
