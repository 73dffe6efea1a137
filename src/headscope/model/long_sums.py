"""Sums over the attention of a long input, accumulated block by block without a whole map."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from headscope.model import kernels_of_rows
from headscope.model.lags import Diagonals, Lags

UNSEEN = -1e30  # a score whose exponential is 0, and that times 0 is 0
Norms = Callable[[int, torch.Tensor, slice], torch.Tensor]  # see `Asked`


@dataclass(frozen=True)
class Asked:
    """What sums over whole maps are asked for.

    separator  [example, query] bool: which queries' columns are summed by themselves
    norms      takes an example, the weights of all heads in a block [head, query, key] and which
               keys these are, gives [key]; None: that is not asked for
    diagonals  the cuts of `lags.Lags` and how many first keys; None: likewise
    """

    separator: torch.Tensor
    norms: Norms | None = None
    diagonals: Diagonals | None = None


@dataclass(frozen=True)
class MapSums:
    """Sums over the whole maps of one example.

    log_sums  [head, query] log Σ_j exp(s_ij), sinks included
    entropy   [head, query] -Σ_j α_ij log α_ij in nats, without sinks
    columns   [head, class, key] Σ_i α_ij over the queries that are no separator, and that are
    received  [key] what `Asked.norms` gives, over all queries; 0 where not asked for
    lags      sums over diagonals, of all tokens of the batch; None where not asked for
    """

    log_sums: torch.Tensor
    entropy: torch.Tensor
    columns: torch.Tensor
    received: torch.Tensor
    lags: Lags | None = None

    @classmethod
    def zeros(
        cls, heads: int, tokens: int, like: torch.Tensor, lags: Lags | None = None
    ) -> "MapSums":
        """Nothing read yet."""
        shapes = (heads, tokens), (heads, tokens), (heads, 2, tokens), (tokens,)
        log_sums, entropy, columns, received = (like.new_zeros(shape) for shape in shapes)
        return cls(log_sums, entropy, columns, received, lags)

    def add(  # noqa: PLR0917
        self,
        scores: torch.Tensor,
        heads: slice,
        rows: slice,
        keys: slice,
        sink: torch.Tensor | None,
        separator: torch.Tensor,
    ) -> None:
        """Add a block of whole rows; its scores [head, row, key] become the weights.

        sink  [head] the score of no key at all
        """
        size = scores.shape[0], scores.shape[1]
        if scores.device.type == "cpu" and scores.dtype == torch.float32:
            log_sums, entropy = torch.empty(size), torch.empty(size)
            columns = torch.empty(size[0], 2, scores.shape[2])
            sink = scores.new_full(size[:1], UNSEEN) if sink is None else sink
            kernels_of_rows.weigh(
                *(t.numpy() for t in (scores, sink, separator.long(), log_sums, entropy, columns))
            )
        else:
            log_sums = scores.logsumexp(-1)
            if sink is not None:
                log_sums = torch.logaddexp(log_sums, sink[:, None])
            logs = scores - log_sums[..., None]
            torch.exp(logs, out=scores)
            entropy = -torch.linalg.vecdot(scores, logs)
            columns = torch.stack([~separator, separator]).to(scores) @ scores
        self.log_sums[heads, rows] = log_sums
        self.entropy[heads, rows] = entropy.clamp_min_(0)
        self.columns[heads, :, keys] += columns
