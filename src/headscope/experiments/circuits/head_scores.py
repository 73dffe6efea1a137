"""Scores of heads from attention on repeated tokens, and from their weights alone.

Attention, on inputs of random tokens that come twice, for queries i of the second half (Olsson et
al. 2022), as sums over pairs of places, so no more of a map is read than these:

    previous token   α(i, i−1), of every query whose previous token was drawn
    duplicate token  α(i, j), j the same token in the first half
    induction        α(i, j+1), to what came after it

and how much of what a head writes for the tokens that it attends to speaks for these same tokens.
Weights: do heads copy, count on, read what another one writes?

Copying by weights (Elhage et al. 2021): Σ Re λ / Σ |λ|, λ the eigenvalues of W_E W_V W_O W_U, whose
non-zero ones are those of the small matrix W_O W_U W_E W_V [dim, dim]. 1: every token speaks for
itself through the head; −1: against itself.

Composition: ‖W_read W_write‖_F / (‖W_read‖_F ‖W_write‖_F), where W_write = W_V W_O of the earlier
head, and W_read of the later one is W_QKᵀ (Q), W_QK (K) or W_V W_O (V). Of two matrices with the
same singular values, turned at random in the residual stream, the mean of its square is 1 / model
width exactly, and its spread is known too (the moments of random rotations): the result is the
number of standard deviations by which the square lies above.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch

from headscope.core.accumulators import Bools, Float64, ratio
from headscope.experiments.circuits.made_inputs import Repeats, WordPairs
from headscope.experiments.circuits.result import WAYS
from headscope.experiments.circuits.weight_maps import ROUNDING, SOME, HeadMatrices, WeightMaps
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LayerView


def copying(maps: Sequence[HeadMatrices], weights: WeightMaps) -> Float64:
    """[layer, head] copying score Σ Re λ / Σ |λ|, from −1 to 1; 0 if a head writes nothing."""
    speaks = weights.unembedding
    tokens = min(len(speaks), len(weights.embedding))
    across = (speaks[:tokens].T @ weights.embedding[:tokens]).double()  # [model, model]
    scores = []
    for layer in maps:
        small = layer.output @ across @ layer.value  # [head, dim, dim]
        if not small.isfinite().all():
            scores.append(torch.full_like(small[:, 0, 0], torch.nan))
            continue
        values = torch.from_numpy(np.linalg.eigvals(small.numpy()))
        total, size = values.abs().sum(-1), torch.linalg.matrix_norm(across)
        size = size * torch.linalg.matrix_norm(layer.output) * torch.linalg.matrix_norm(layer.value)
        writes = total > ROUNDING * size  # else the head writes nothing that is read out
        scores.append(torch.where(writes, values.real.sum(-1) / total, 0.0))
    return torch.stack(scores).numpy()


def composition(maps: Sequence[HeadMatrices]) -> tuple[Float64, Float64]:
    """For every pair of heads, how much the later one reads of what the earlier one writes.

    returns  [way, reader, writer] from 0 to 1, ways as WAYS, heads by unit; and by how many
             standard deviations its square lies above that of random rotations. NaN unless the
             reader's layer is later
    """
    writes = [_Product(layer.value, layer.output) for layer in maps]
    reads = [  # of what reads the stream, the transpose: the stream stands last, as in `writes`
        {
            "query": _Product(layer.key, layer.query.transpose(1, 2)),
            "key": _Product(layer.query, layer.key.transpose(1, 2)),
            "value": _Product(layer.output.transpose(1, 2), layer.value.transpose(1, 2)),
        }
        for layer in maps
    ]
    square, above, _ = _pairs(writes, reads)
    return np.sqrt(square), above


def projection_kernel(maps: Sequence[HeadMatrices]) -> tuple[Float64, Float64]:
    """For every pair of heads, how far the subspace that the later one reads is the one that the
    earlier one writes (Yamagiwa et al. 2026).

    returns  [way, reader, writer] mean of cos² over the principal angles of the two subspaces, from
             0 to 1, ways as WAYS; and by how many standard deviations it lies above that of random
             subspaces, whose mean is the larger rank / model width. NaN unless the reader's layer
             is later
    """
    writes = [_subspace(layer.output) for layer in maps]
    reads = [
        {name: _subspace(getattr(layer, name).transpose(1, 2)) for name in WAYS} for layer in maps
    ]
    square, above, rank = _pairs(writes, reads)
    return square * rank, above


def _subspace(rows: torch.Tensor) -> "_Product":
    """The projection onto the space of the rows [head, dim, model], divided by its norm; 0 of rows
    that are 0, or not known.
    """
    _, sizes, basis = torch.linalg.svd(rows.nan_to_num(), full_matrices=False)
    there = sizes > ROUNDING * sizes[:, :1]  # [head, dim]
    one = torch.eye(rows.shape[1], dtype=rows.dtype).expand(len(rows), -1, -1)
    return _Product(one, basis * there[..., None])


def _pairs(
    writes: "Sequence[_Product]", reads: "Sequence[dict[str, _Product]]"
) -> tuple[Float64, Float64, Float64]:
    """[way, reader, writer] ‖W_write W_read‖² of products of norm 1, its standard deviations above
    random rotations, and the larger rank, as far as singular values are equal.
    """
    layers, (heads, _, width) = len(writes), writes[0].short.shape
    score = np.full((len(WAYS), layers * heads, layers * heads), np.nan)
    above, rank = score.copy(), score.copy()
    for writer, reader in combinations(range(layers), 2):
        rows, columns = (slice(at * heads, (at + 1) * heads) for at in (reader, writer))
        one = writes[writer]
        for way, name in enumerate(WAYS):
            other = reads[reader][name]
            square = one.composed(other)  # [writer, reader]
            spread = _spread(one.evenness[:, None], other.evenness[None], width)
            score[way, rows, columns] = square.T
            there = one.there[:, None] & other.there[None]
            above[way, rows, columns] = np.where(there, (square - 1 / width) / spread, np.nan).T
            least = np.minimum(one.evenness[:, None], other.evenness[None])
            rank[way, rows, columns] = ratio(np.ones_like(least), least).T
    return score, above, rank


class _Product:
    """W = left @ right of each head, divided by ‖W‖, stored in low rank.

    short     [head, dim, model] a rotation of the rows of W / ‖W‖
    evenness  [head] Σ s⁴ of its singular values s: 1 / rank where they are equal
    there     [head] whether W is not 0
    """

    def __init__(self, left: torch.Tensor, right: torch.Tensor) -> None:
        short = _root(left) @ right
        size = torch.linalg.matrix_norm(short, keepdim=True)
        self.there = (size > 0).flatten().numpy()
        short = short / size.clamp_min(1e-300)  # NaN stays
        self.evenness = ((short @ short.transpose(1, 2)) ** 2).sum((1, 2)).numpy()
        self.short = short.float()

    def composed(self, read: "_Product") -> Float64:
        """[own head, other head] ‖W_write W_read‖² of matrices of norm 1."""
        one, other = self.short, read.short
        product = one.flatten(0, 1) @ other.flatten(0, 1).T
        squares = product.square_().view(len(one), one.shape[1], len(other), other.shape[1])
        return np.asarray(squares.sum((1, 3)).double())


def _root(left: torch.Tensor) -> torch.Tensor:
    """[head, dim, dim] R with RᵀR = leftᵀ left; NaN where that is not known."""
    root: torch.Tensor = torch.linalg.qr(left.nan_to_num(), mode="r").R
    return root if left.isfinite().all() else root * torch.nan


def _spread(one: Float64, other: Float64, width: int) -> Float64:
    """Standard deviation of ‖A U B‖² over random rotations U, for ‖A‖ = ‖B‖ = 1.

    one, other  Σ s⁴ of the singular values of A and of B

    From E u_ij⁴ = 3 / d(d+2), E u_ij² u_ik² = 1 / d(d+2), E u_ij² u_kl² = (d+1) / d(d−1)(d+2).
    """
    d = width
    same = (3 * one * other + one * (1 - other) + (1 - one) * other) / (d * (d + 2))
    differ = (1 - one) * (1 - other) * (d + 1) / (d * (d - 1) * (d + 2))
    return np.sqrt(np.maximum(same + differ - 1 / d**2, 1e-300))


def successors(maps: Sequence[HeadMatrices], weights: WeightMaps, pairs: WordPairs) -> Bools:
    """Whether each head makes an ordinal's successor the top token (Gould et al. 2024).

    returns  [pair, layer, head] of W_E → first feed-forward → W_V W_O → W_U over the whole
             vocabulary
    """
    first = weights.first_feed_forward(pairs.ids).double()  # [pair, model]
    speaks = weights.unembedding
    forms = speaks[pairs.forms(max(map(len, pairs.right)))]  # [pair, form, model]
    some = speaks[:: max(1, len(speaks) // SOME)]
    lengths = speaks.norm(dim=1).max()
    successor = np.zeros((len(pairs.ids), len(maps), len(maps[0].query)), bool)
    for at, layer in enumerate(maps):
        written = (first @ layer.value @ layer.output).float()  # [head, pair, model]
        for head, rows in enumerate(written):
            nothing = ROUNDING * float(rows.norm() * lengths)
            own = torch.einsum("pm,pfm->pf", rows, forms).amax(1)
            # Whole rows only of pairs whose successor may be the top token.
            left = (own + nothing >= (rows @ some.T).amax(1)).nonzero()[:, 0]
            most, top = (rows[left] @ speaks.T).max(-1)
            rows_of_pairs = zip(left.tolist(), most.tolist(), top.tolist(), strict=True)
            for pair, highest, token in rows_of_pairs:
                successor[pair, at, head] = highest > nothing and token in pairs.right[pair]
    return successor


class PatternScores:
    """Scores of attention patterns in one batch of repeated inputs, and of those without repeats.

    found       [layer] of [example, head, quantity]: PATTERNS, what the previous token is compared
                with, and where `unembedding` is given two ratios of sums, see `_copying`
    null        [layer] of [example, head, quantity]: duplicate token and induction, where the
                second half is new
    unembedding  [token, model] see `WeightMaps`; None: copying is left out
    """

    def __init__(self, made: Repeats, unembedding: torch.Tensor | None = None) -> None:
        self.made, self.unembedding = made, unembedding
        self.found: list[Float64] = []
        self.null: list[Float64] = []

    def look(self, view: LayerView, batch: Batch) -> None:
        """Add a layer."""
        places = self._places(view, batch)
        if self.unembedding is not None:
            places += self._copying(view, batch)
        self.found.append(to_float64(torch.stack(places, -1)))  # [example, head, quantity]

    def look_at_new(self, view: LayerView, batch: Batch, *, first: int) -> None:
        """Add a layer of the inputs whose second half is new; its queries begin with this token."""
        same, after = self._again(view, batch, first)
        self.null.append(to_float64(torch.stack([same.mean(-1), after.mean(-1)], -1)))

    @property
    def whole(self) -> Float64:
        """[example, layer, head, quantity] the scores of all layers."""
        return np.stack(self.found, 1)

    def _before(self, batch: Batch) -> torch.Tensor:  # [example, query of second half]
        """The position in the first half of the same token."""
        return torch.from_numpy(self.made.before(batch.examples)).to(batch.input_ids.device)

    def _places(self, view: LayerView, batch: Batch) -> list[torch.Tensor]:
        first, n = self.made.opening, self.made.length
        end = first + 2 * n  # behind it there may be padding
        previous = view.neighbour(-1)[..., first : end - 1]  # [example, head, query]
        same, after = self._again(view, batch)
        # What is left without first, own and previous token goes to one earlier token at random.
        queries = torch.arange(first + 2, end, device=previous.device)
        rest = 1 - view.rest[..., first + 2 : end] if view.sinks else 1.0
        rest = rest - view.neighbour(0)[..., first + 2 : end] - previous[..., 1:]
        if first:
            rest = rest - _to(view, queries, torch.zeros_like(queries).expand(len(rest), -1))
        other = rest.clamp_min(0) / (queries - 1 - first)  # [example, head, query]
        return [previous.mean(-1), same.mean(-1), after.mean(-1), other.mean(-1)]

    def _again(self, view: LayerView, batch: Batch, first: int = 0) -> list[torch.Tensor]:
        """[example, head, query of second half] attention to the same token, and to the next."""
        keys, n = self.made.opening + self._before(batch), self.made.length
        start = self.made.opening + n - first
        queries = torch.arange(start, start + n, device=keys.device)
        return [_to(view, queries, keys), _to(view, queries, keys + 1)]

    def _copying(self, view: LayerView, batch: Batch) -> list[torch.Tensor]:
        """How much sources raise their own logit among the input's tokens, and all logits;
        attention to the sources that raise themselves most, and to all.
        """
        assert self.unembedding is not None
        assert view.values is not None
        first, n = self.made.opening, self.made.length
        ids = batch.input_ids[:, first : first + n]
        speaks = self.unembedding[ids.cpu()].to(ids.device)  # [example, token, model]
        weight = view.projection.weight.to(speaks)  # [head, dim, model]
        to_token = torch.einsum("hdm,etm->ehdt", weight, speaks)
        values = view.values[:, :, first : first + 2 * n].to(speaks)
        raised = values @ to_token  # [example, head, key, token]
        size = values.norm(dim=-1, keepdim=True) * torch.linalg.matrix_norm(weight)[:, None, None]
        raised = raised.masked_fill(raised <= ROUNDING * size * speaks.norm(dim=-1).amax(), 0)
        again = self._before(batch)[:, None, :, None].expand(-1, raised.shape[1], -1, 1)
        halves = raised[:, :, :n].diagonal(dim1=2, dim2=3), raised[:, :, n:].gather(3, again)
        own = torch.cat([halves[0], halves[1][..., 0]], -1)  # [example, head, key]
        most = (own > 0) & (own >= raised.amax(-1))
        queries = first + n + torch.arange(n, device=own.device)
        rows = view.rows(queries.expand(len(own), n))[..., first : first + 2 * n]
        by_key = rows.sum(2).to(own)  # [example, head, key]
        parts = own, raised.sum(-1), most, torch.ones_like(own)
        return [(by_key * part).sum(-1) for part in parts]


def _to(view: LayerView, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """[example, head, query] attention of some queries to one key each, keys [example, query]."""
    examples, many = keys.shape
    example = torch.arange(examples, device=keys.device).repeat_interleave(many)
    pairs = view.pairs(example, queries.repeat(examples), keys.flatten())  # [pair, head]
    return pairs.view(examples, many, -1).transpose(1, 2)
