"""How much each token contributes to each token's output of one layer.

Token j gives token i the vector t_ij = Σ_h α_ij f_h(x_j), and x_i itself where i = j (residual).
Rows are divided by their sum; before that, entry i, j of each method is

    rollout                 mean over heads of α_ij, and 1 where i = j (Abnar & Zuidema 2020)
    weighted_norm           ‖t_ij‖ without the residual (Kobayashi et al. 2020)
    weighted_norm_residual  ‖t_ij‖ (Kobayashi et al. 2021, AttnRes-N)
    globenc                 ‖g₂(g₁(t_ij))‖ (Modarressi et al. 2022): through the norm after
                            attention and the norm that closes the layer, without feed-forward
    alti                    max(0, ‖y_i‖₁ - ‖y_i - g₁(t_ij)‖₁), y_i what leaves the norm after
                            attention (Ferrando et al. 2022)
    value_zeroing           1 - cos of token i's output of the whole layer with and without v_j in
                            all its heads, input and weights unchanged (Mohebbi et al. 2023)

g(t) = γ ⊙ (t - mean(t)) / s is what a LayerNorm does to a part of its input, s being the standard
deviation of the whole (Kobayashi et al. 2021); β and b_O belong to no token, but are part of y_i.
Where s scales a whole row, dividing the row by its sum cancels it: globenc needs neither of its
two, and alti multiplies everything by its own. Models that normalise before attention add to a
stream that no norm follows: t_ij holds the norm's effect on x_j inside f, there is no globenc, and
alti takes the stream for y_i and t for g₁.

Nothing as large as [query, key, model] is ever held.
"""

from collections.abc import Callable

import numpy as np
import torch

from headscope.analyses.flow import why_not
from headscope.errors import ModelError
from headscope.model import kernels
from headscope.model.batch import Batch
from headscope.model.kernels import compiled
from headscope.model.layer import LayerView
from headscope.model.replay_layer import run_again


def layer_matrix(layer: LayerView, batch: Batch, method: str) -> torch.Tensor:
    """[example, query, key] contributions by one of METHODS; rows sum to 1.

    A token that nothing reaches stays itself, and so does padding.

    raises  ModelError where the method has no meaning for this model, see `flow.why_not`
    """
    if why := why_not(layer, method):
        raise ModelError(f"{method} is not there for {type(layer.site.attention).__name__}: {why}")
    with torch.no_grad():
        raw = _RAW[method](layer, batch)  # [example, query, key]
        inside = raw.where(batch.mask[:, :, None] & batch.mask[:, None, :], 0.0)
        sums = inside.sum(-1, keepdim=True)
        itself = torch.eye(raw.shape[-1], dtype=raw.dtype, device=raw.device)
        return torch.where(sums > 0, inside / sums.clamp_min(torch.finfo(raw.dtype).tiny), itself)


def _rollout(layer: LayerView, _batch: Batch) -> torch.Tensor:
    weights = layer.attention.mean(1)  # [example, query, key]
    return weights + torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)


def _weighted_norm_residual(layer: LayerView, batch: Batch) -> torch.Tensor:
    own = torch.linalg.vector_norm(layer.kept, dim=-1)  # [example, query]
    return _with_diagonal(layer.summed_norm(batch), own)


def _globenc(layer: LayerView, batch: Batch) -> torch.Tensor:
    site = layer.site
    projection, first, last = site.closed_projection, site.post_norm, site.closing_norm
    assert projection is not None
    assert first is not None
    assert last is not None
    own = torch.linalg.vector_norm(last.of_part(first.of_part(layer.kept)), dim=-1)
    others = layer.norm_of_sum(layer.inner_products(projection), batch)
    return _with_diagonal(others, own)


def _with_diagonal(matrix: torch.Tensor, diagonal: torch.Tensor) -> torch.Tensor:
    """A copy of the matrices [example, query, key] with another diagonal [example, query]."""
    return torch.diagonal_scatter(matrix, diagonal.to(matrix.dtype), dim1=1, dim2=2)


_ROWS = 8  # queries of [query, key, model] at once, where the loop is not compiled


def alti(layer: LayerView, batch: Batch) -> torch.Tensor:
    """[example, query, key] contributions, at least 0, each row on a scale of its own.

    ‖y_i‖₁ - ‖y_i - t‖₁ is summed number by number: exactly 0 where nothing is given.
    """
    assert layer.values is not None
    whole, kept = _whole(layer), layer.kept  # [example, query, model]
    projection = layer.projection
    if layer.site.post_norm is not None:
        kept = layer.site.post_norm.of_part(kept)
        assert layer.site.normed_projection is not None
        projection = layer.site.normed_projection
    itself = (whole.abs() - (whole - kept).abs()).sum(-1)  # [example, query]
    maps = whole.new_zeros(layer.attention[:, 0].shape)  # [example, query, key]
    weight = projection.weight.to(whole.dtype)
    for example, n in enumerate(batch.lengths.tolist()):  # one at a time, to hold little
        weights = layer.attention[example, :, :n, :n]  # [head, query, key]
        values = layer.values[example, :, :n].to(whole.dtype)  # [head, key, dim]
        maps[example, :n, :n] = nearness(weights, values, weight, whole[example, :n])
    maps.diagonal(dim1=1, dim2=2).copy_(itself)
    return maps.clamp_min(0)


def nearness(
    weights: torch.Tensor, values: torch.Tensor, projection: torch.Tensor, whole: torch.Tensor
) -> torch.Tensor:
    """[query, key] ‖y_i‖₁ - ‖y_i - Σ_h α_ij v_j W_h‖₁ of one example.

    weights [head, query, key], values [head, key, dim], projection [head, dim, model],
    whole [query, model]
    """
    if compiled(weights):
        vectors = projection.transpose(1, 2) @ values.transpose(1, 2)  # [head, model, key]
        out = np.zeros(weights.shape[1:], np.float32)
        tensors = (weights.contiguous(), vectors.contiguous(), whole.contiguous())
        kernels.nearness(*(t.numpy() for t in tensors), out)
        return torch.from_numpy(out)
    vectors = values @ projection  # [head, key, model]
    rows = []
    for start in range(0, len(whole), _ROWS):
        y, a = whole[start : start + _ROWS], weights[:, start : start + _ROWS].to(vectors.dtype)
        part = torch.einsum("hqk,hkm->qkm", a, vectors)  # [query, key, model]
        rows.append((y.abs()[:, None] - (y[:, None] - part).abs()).sum(-1))  # [query, key]
    return torch.cat(rows)  # [query, key]


def _whole(layer: LayerView) -> torch.Tensor:
    """[example, query, model] y_i · s_i; the residual stream itself where no norm follows."""
    assert layer.output is not None
    assert layer.residual is not None
    stream = layer.kept.dtype
    total = layer.output.to(stream) + layer.residual.to(stream)
    norm = layer.site.post_norm
    if norm is None:
        return total
    centred = norm.of_part(total)
    if norm.shift is None:
        return centred
    deviation = (total.var(-1, correction=0, keepdim=True) + norm.epsilon).sqrt()
    return centred + norm.shift.to(stream) * deviation


MOST_NUMBERS = 1 << 24  # of weights and hidden numbers in one go: 64 MiB in float32
_WIDTHS = 10  # numbers of a token alive at once, in widths of the model; feed-forwards have 4


def value_zeroing(layer: LayerView, batch: Batch) -> torch.Tensor:
    """[example, query, key] 1 - cos, 0 … 2; 0 where a query attends to the key in no head."""
    assert layer.values is not None
    # Products of one copy and of several may differ in their last bits, by the processor.
    rounding = (4 * torch.finfo(layer.values.dtype).eps) ** 2
    changes = torch.zeros_like(layer.attention[:, 0])  # [example, query, key]
    for example, tokens in enumerate(batch.lengths.tolist()):
        values = layer.values[example]  # [head, key, dim]
        whole = _direction(run_again(layer, example=example, values=values[None]))
        at_once = _at_once(layer)
        for start in range(0, tokens, at_once):
            copies = torch.arange(min(at_once, tokens - start), device=values.device)
            zeroed = values.repeat(len(copies), 1, 1, 1)  # [copy, head, key, dim]
            zeroed[copies, :, start + copies] = 0  # in each copy one token
            other = _direction(run_again(layer, example=example, values=zeroed))
            # ½‖a - b‖² of unit vectors is 1 - cos, without taking two numbers near 1 apart.
            gone = (other - whole).square().sum(-1) / 2  # [copy, query]
            gone[gone < rounding] = 0
            changes[example, :, start : start + len(zeroed)] = gone.T.to(changes.dtype)
    return changes.where(layer.attention.amax(1) > 0, 0.0)


def _direction(hidden: torch.Tensor) -> torch.Tensor:
    """[copy, token, model] unit vectors, wide enough for small differences."""
    return torch.nn.functional.normalize(hidden.double(), dim=-1)


def _at_once(layer: LayerView) -> int:
    """How many copies of one example fit into MOST_NUMBERS."""
    _, heads, tokens, _ = layer.attention.shape
    assert layer.values is not None
    width = heads * layer.values.shape[-1]
    return max(1, MOST_NUMBERS // (tokens * (heads * tokens + _WIDTHS * width)))


_RAW: dict[str, Callable[[LayerView, Batch], torch.Tensor]] = {
    "rollout": _rollout,
    "weighted_norm": lambda layer, batch: layer.summed_norm(batch),
    "weighted_norm_residual": _weighted_norm_residual,
    "globenc": _globenc,
    "alti": alti,
    "value_zeroing": value_zeroing,
}
