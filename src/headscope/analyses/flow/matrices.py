"""How much does each token contribute to each token's output of one layer?

Token j gives token i the vector t_ij = Σ_h α_ij f_h(x_j), and x_i itself where i = j (residual).
Rows are divided by their sum; per method, what stands in row i at j before that is

    rollout                 mean over heads of α_ij, and 1 where i = j (Abnar & Zuidema 2020)
    weighted_norm           ‖t_ij‖ without the residual (Kobayashi et al. 2020)
    weighted_norm_residual  ‖t_ij‖ (Kobayashi et al. 2021, AttnRes-N)
    globenc                 ‖g₂(g₁(t_ij))‖ (Modarressi et al. 2022): through the norm after
                            attention and the norm that closes the layer, without feed-forward
    alti                    max(0, ‖y_i‖₁ - ‖y_i - g₁(t_ij)‖₁), y_i what leaves the norm after
                            attention (Ferrando et al. 2022)
    value_zeroing           1 - cos of token i's output of the layer with and without v_j, see
                            `zeroing` (Mohebbi et al. 2023)

g(t) = γ ⊙ (t - mean(t)) / s is what a LayerNorm does to a part of its input, s being the standard
deviation of the whole (Kobayashi et al. 2021); β and b_O belong to no token, but are part of y_i.
Where s scales a whole row, dividing the row by its sum cancels it: globenc needs neither of its
two. Models that normalise before attention add to a stream that no norm follows: t_ij holds the
norm's effect on x_j inside f, there is no globenc, and alti takes the stream for y_i and t for g₁.

Nothing as large as [query, key, model] is ever held.
"""

from __future__ import annotations

import torch

from headscope.analyses.flow.alti import alti
from headscope.analyses.flow.methods import require
from headscope.analyses.flow.zeroing import value_zeroing
from headscope.model.batch import Batch
from headscope.model.layer import LayerView


def layer_matrix(layer: LayerView, batch: Batch, method: str) -> torch.Tensor:
    """[example, query, key] contributions by one of METHODS; rows sum to 1.

    A token that nothing reaches stays itself, and so does padding.

    raises  ModelError where the method has no meaning for this model, see `methods.why_not`
    """
    require(layer, method)
    with torch.no_grad():
        return normalised(_RAW[method](layer, batch), batch)


def normalised(raw: torch.Tensor, batch: Batch) -> torch.Tensor:
    """[example, query, key] rows divided by their sums, rows of zeros and of padding: identity."""
    real = batch.mask[:, :, None] & batch.mask[:, None, :]  # [example, query, key]
    inside = raw.where(real, 0.0)
    sums = inside.sum(-1, keepdim=True)
    itself = torch.eye(raw.shape[-1], dtype=raw.dtype, device=raw.device)
    return torch.where(sums > 0, inside / sums.clamp_min(torch.finfo(raw.dtype).tiny), itself)


def _rollout(layer: LayerView, _batch: Batch) -> torch.Tensor:
    weights = layer.attention.mean(1)  # [example, query, key]
    return weights + torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)


def _weighted_norm(layer: LayerView, batch: Batch) -> torch.Tensor:
    return layer.summed_norm(batch)


def _weighted_norm_residual(layer: LayerView, batch: Batch) -> torch.Tensor:
    own = torch.linalg.vector_norm(layer.kept, dim=-1)  # [example, query]
    return _with_diagonal(layer.summed_norm(batch), own)


def _globenc(layer: LayerView, batch: Batch) -> torch.Tensor:
    projection, norms = layer.site.closed_projection, (layer.norm, layer.final_norm)
    assert projection is not None
    kept = layer.kept
    for norm in norms:
        assert norm is not None
        kept = norm.of_part(kept)  # [example, query, model]
    others = layer.norm_of_sum(layer.inner_products(projection), batch)
    return _with_diagonal(others, torch.linalg.vector_norm(kept, dim=-1))


def _with_diagonal(matrix: torch.Tensor, diagonal: torch.Tensor) -> torch.Tensor:
    """A copy of the matrices [example, query, key] with another diagonal [example, query]."""
    return torch.diagonal_scatter(matrix, diagonal.to(matrix.dtype), dim1=1, dim2=2)


_RAW = {
    "rollout": _rollout,
    "weighted_norm": _weighted_norm,
    "weighted_norm_residual": _weighted_norm_residual,
    "globenc": _globenc,
    "alti": alti,
    "value_zeroing": value_zeroing,
}
