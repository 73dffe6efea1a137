"""Do large weights meet small vectors, and do frequent words get small vectors?

Cancellation: Spearman's correlation of α_ij with ‖f(x_j)‖ over layers, heads and pairs of tokens,
by category of the key (Kobayashi et al. 2020, Table 2). Frequency: Spearman's correlation of a
token's frequency rank with its mean ‖f(x)‖ and with the attention it receives.

Ranks are taken from histograms, of 16 bins to the octave or more: within 1e-3 of what ranks without
bins would give; see `run.rank_histograms`. Each document has queries of its own drawn, so that how
documents differ tells also what the drawing adds.
"""

from typing import Any

import numpy as np
import torch

from headscope.core.accumulators import Counts, Float64, Ints, LogBins, generator, ratio, spearman
from headscope.core.intervals import POSITIVE, estimate
from headscope.core.results import Variable
from headscope.corpus.document import Example
from headscope.model.batch import CATEGORIES, Batch, to_float64
from headscope.model.kernels import count, histogram_cells
from headscope.model.layer import LayerView
from headscope.run.analysis import AnalysisPart, Scope
from headscope.run.rank_histograms import BINNED, COARSE_RANK, RankHistograms, around, correlated

WEIGHT = LogBins(-30, 0, 16)
NORM = LogBins(-5, 7, 64)
DRAWN_WEIGHT = LogBins(WEIGHT.first, WEIGHT.last, 2)
DRAWN_NORM = LogBins(NORM.first, NORM.last, 8)
COARSE_WEIGHT = LogBins(-20, 0, 1)
COARSE_NORM = LogBins(-5, 6, 2)
BINS = np.array(
    [
        (*WEIGHT.bits, len(WEIGHT), len(NORM)),
        (*COARSE_WEIGHT.bits, len(COARSE_WEIGHT), len(COARSE_NORM)),
    ],
    np.int32,
)
TOKEN_NORM = LogBins(-4, 6, 256)
TOKEN_WEIGHT = LogBins(-14, 0, 256)
COARSE_TOKEN_NORM = LogBins(-5, 6, 4)
COARSE_TOKEN_WEIGHT = LogBins(-14, 0, 4)
MOST_ROWS = 16  # ours: queries of an input, however long
MOST_PAIRS = 1 << 22  # looked at in one go
QUANTITIES = ("value_norm", "attention")


class Cancellation(AnalysisPart):
    """Histograms of attention weight against value norm, by category of the key.

    every   one of this number of queries is read, drawn once per example: the same share of all, or
            a long example would count for less than it does among all pairs; never more than
            MOST_ROWS. 1: all of them
    """

    def __init__(self, scope: Scope, *, every: int) -> None:
        self.scope, self.every = scope, every
        self.categories = len(CATEGORIES) + scope.first_token
        size = self.categories
        self.pairs = Counts.zeros(size, len(WEIGHT), len(NORM))
        self.coarse_pairs = scope.sums(size, len(COARSE_WEIGHT), len(COARSE_NORM))
        self._queries: torch.Tensor | None = None
        self._batch = np.zeros((0, 0), np.int64)

    def observe(self, layer: LayerView, norm: torch.Tensor, batch: Batch) -> None:
        """Count the chosen rows of one layer; norm [example, head, key]."""
        if layer.index == 0:
            self._choose(layer, batch)
        assert self._queries is not None
        length = norm.float().cpu().numpy()
        of_norm = np.stack([NORM.index(length), COARSE_NORM.index(length)]).astype(np.int32)
        most = max(1, MOST_PAIRS // norm.numel())  # rows at a time
        for start in range(0, self._queries.shape[1], most):
            some = slice(start, start + most)
            weight = layer.rows(self._queries[:, some].to(norm.device)).float().cpu().numpy()
            category = np.ascontiguousarray(self._category[:, some])
            cells = np.empty(weight.shape, np.int32)
            histogram_cells(weight, of_norm, category, BINS, cells, self._batch)
            count(cells.ravel(), self.pairs.counts.reshape(-1))

    def finish(self, batch: Batch) -> None:
        """Add the batch's coarse counts to the groups of its documents."""
        self.coarse_pairs.add(self._batch[:, : -self._coarse_cells], batch.groups)

    @property
    def _coarse_cells(self) -> int:
        return len(COARSE_WEIGHT) * len(COARSE_NORM)

    def _choose(self, layer: LayerView, batch: Batch) -> None:
        examples, tokens = batch.input_ids.shape
        drawn = [self._rows(*one) for one in zip(batch.examples, batch.lengths, strict=True)]
        rows = max(1, *map(len, drawn))
        chosen = np.full((examples, rows), -1)
        for row, some in zip(chosen, drawn, strict=True):
            row[: len(some)] = some
        dropped = self.categories
        of_key = batch.categories_and_first if self.scope.first_token else batch.categories
        flags = of_key.cpu().numpy().astype(bool)  # [example, key, category]
        by_key = np.where(flags.any(-1), flags.argmax(-1), dropped)
        category = np.broadcast_to(by_key[:, None], (examples, rows, tokens)).copy()
        category[chosen < 0] = dropped
        if layer.stack == "decoder":  # the future is hidden: no pair
            category[np.arange(tokens) > chosen[..., None]] = dropped
        self._category = category.astype(np.int32)  # [example, row, key]
        self._queries = torch.from_numpy(np.maximum(chosen, 0)).to(batch.input_ids.device)
        self._batch = np.zeros((examples, (dropped + 1) * self._coarse_cells), np.int64)

    def _rows(self, example: Example, tokens: int) -> Ints:
        """The queries of an example that are looked at: tokens / every of them, on average."""
        if self.every == 1:
            return np.arange(tokens)
        draw = generator(self.scope.seed, "rows", example.document, example.id)
        count = int(min(tokens / self.every, MOST_ROWS) + draw.random())
        return np.sort(draw.choice(tokens, count, replace=False))

    def result(self) -> dict[str, Variable]:
        """The correlation by category, and the histogram it comes from."""
        fine = self.pairs.counts
        correlation = around(spearman(fine), *correlated(self.coarse_pairs))
        which = (
            "all queries" if self.every == 1 else f"one of {self.every} queries, drawn at random"
        )
        source = "Kobayashi et al. 2020, Table 2"
        return {
            "spearman_attention_value_norm": Variable(
                correlation,
                ("category",),
                f"Spearman correlation of weight and ‖f(x)‖ over {which}, {BINNED}",
                "1",
                source,
            ),
            "attention_value_norm_histogram": Variable(
                _coarser(fine),
                ("category", "attention_bin", "value_norm_bin"),
                "pairs of tokens by attention weight and ‖f(x)‖",
                "pairs",
                source,
            ),
        }

    def coords(self) -> dict[str, Any]:
        """Lower edges of the histogram's bins."""
        bins = {"attention_bin": DRAWN_WEIGHT, "value_norm_bin": DRAWN_NORM}
        return {name: each.edges()[:-1] for name, each in bins.items()}


class FrequencyRelation(AnalysisPart):
    """Frequency rank against what a token occurrence gets, mean over heads and layers."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.norm = RankHistograms(scope, 1, TOKEN_NORM, COARSE_TOKEN_NORM)
        self.weight = RankHistograms(scope, 1, TOKEN_WEIGHT, COARSE_TOKEN_WEIGHT)
        self.profile = scope.sums(len(QUANTITIES), len(COARSE_RANK))
        self.profile_tokens = scope.sums(len(COARSE_RANK))
        self._both: Float64 = np.zeros((0, 0, 0))  # [example, quantity, token] of a batch

    def observe(
        self, layer: LayerView, norm: torch.Tensor, columns: torch.Tensor, batch: Batch
    ) -> None:
        """Add one layer to each token's mean norm and mean attention received.

        norm, columns  [example, head, key]
        """
        if layer.index == 0:
            self._both = np.zeros((len(norm), len(QUANTITIES), norm.shape[-1]))
        heads = self.scope.layers * self.scope.heads
        self._both[:, 0] += to_float64(norm.sum(1)) / heads
        self._both[:, 1] += to_float64(columns.sum(1)) / heads / batch.lengths[:, None]

    def finish(self, batch: Batch) -> None:
        """Count every real token under its rank."""
        if self.scope.frequency_rank is None:
            return
        mask = batch.mask.cpu().numpy()
        self.norm.add(0, self._both[:, 0], mask, batch)
        self.weight.add(0, self._both[:, 1], mask, batch)
        rank = self.scope.frequency_rank[batch.input_ids.cpu().numpy()]  # [example, token]
        place = COARSE_RANK.index(rank)[..., None] == np.arange(len(COARSE_RANK))
        place = place & mask[..., None]  # [example, token, rank_bin]
        self.profile.add(self._both @ place, batch.groups)
        self.profile_tokens.add(place.sum(1) * 1.0, batch.groups)

    def result(self) -> dict[str, Variable]:
        """The two correlations, and the mean of each quantity by octave of the rank."""
        if self.scope.frequency_rank is None:
            return {}
        source = "Kobayashi et al. 2020"
        ranked = [histograms.correlations() for histograms in (self.norm, self.weight)]
        both = (np.concatenate(parts, -1) for parts in zip(*ranked, strict=True))
        tokens = self.profile_tokens.sums[:, None]
        profile = ratio(self.profile.sums, tokens)
        return {
            "spearman_frequency": Variable(
                around(*both, agreement=self.norm.agreement()),
                ("quantity",),
                "Spearman correlation with the token's frequency rank (1 = most frequent), "
                f"{BINNED}",
                "1",
                source,
            ),
            "frequency_profile": Variable(
                self.norm.by_octave(estimate(profile, bounds=POSITIVE, sizes=tokens)),
                ("quantity", "rank_bin"),
                "mean over tokens, layers and heads, by octave of the frequency rank",
                "1",
                source,
            ),
        }

    def coords(self) -> dict[str, Any]:
        """Geometric middles of the rank octaves."""
        edges = COARSE_RANK.edges()[1:]
        middles = np.concatenate([[1.0], edges[:-1] * 2**0.5])
        return {"quantity": QUANTITIES, "rank_bin": middles}


def _coarser(pairs: Ints) -> Ints:
    """[category, attention_bin, value_norm_bin] the fine histogram in the bins that are drawn."""
    drawn = np.zeros((len(pairs), len(DRAWN_WEIGHT), len(DRAWN_NORM)), np.int64)
    rows, columns = DRAWN_WEIGHT.coarsen(WEIGHT), DRAWN_NORM.coarsen(NORM)
    for category, counts in enumerate(pairs):
        np.add.at(drawn[category], (rows[:, None], columns[None]), counts)
    return drawn
