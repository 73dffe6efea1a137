"""Measures how alike every head is to the same head of another model.

Per example the cosine of the two flattened maps, special tokens included, padding cut off; then the
mean over examples (Kovaleva et al. 2019, §4.3). Beside it the Jensen-Shannon divergence, which does
not forgive small weights. The authors' notebook flattens maps that are padded to a fixed length,
with the rows that padding attends by: `padded_to` gives that cosine too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr

from headscope.core.accumulators import Float64, Sums, estimate
from headscope.core.labelled import Variable, labelled
from headscope.errors import ModelError
from headscope.experiments.comparison.changed_inputs import MostChanged
from headscope.experiments.comparison.layer_change import Training, beside_training, by_depth
from headscope.model import kernels
from headscope.model.batch import Batch, to_float64
from headscope.model.layer import LN2, compiled
from headscope.run.analysis import Analysis, Scope, ratio_of

SOURCE = "Kovaleva et al. 2019, §4.3"
COSINE, JS = 0, 1


class Similarity(Analysis):
    """Sums over examples of what says how alike two models' heads are; see `alike`.

    It looks at two models at once, so it is not among the registered analyses.

    padded_to  tokens that all batches are padded to; None: no padded cosine
    """

    name = "similarity"

    def __init__(self, scope: Scope, *, padded_to: int | None = None) -> None:
        super().__init__(scope)
        grid = (scope.layers, scope.heads)
        self.cosine, self.js = self.sums(*grid), self.sums(*grid)
        self.padded = None if padded_to is None else self.sums(*grid)
        self.examples = self.sums()
        self.most = MostChanged()
        self._change: Float64 | None = None

    def observe_pair(
        self, layer: int, before: torch.Tensor, after: torch.Tensor, batch: Batch
    ) -> None:
        """Add one layer of one batch; before, after [example, head, query, key]."""
        found = alike(before, after, batch.lengths)  # [example, head, 2]
        if not np.isfinite(found).all():
            raise ModelError(
                f"attention of layer {layer + 1} is not a number in one of the two models; wanted "
                "weights that are finite"
            )
        self.cosine.add(found[..., COSINE], batch.bootstrap, at=(layer,))
        self.js.add(found[..., JS], batch.bootstrap, at=(layer,))
        if self.padded is not None:
            whole = np.full_like(batch.lengths, before.shape[-1])
            cosine = alike(before, after, whole)[..., COSINE]
            self.padded.add(cosine, batch.bootstrap, at=(layer,))
        change = (1 - found[..., COSINE]).mean(1)  # [example]
        self._change = change if layer == 0 or self._change is None else self._change + change

    def finish_batch(self, batch: Batch, *, shard: int, rows: Sequence[int]) -> None:
        """Conclude a batch: the examples at these rows of a shard."""
        assert self._change is not None
        self.examples.add(np.ones(len(rows)), batch.bootstrap)
        change = self._change / self.scope.layers
        self.most.add(batch.examples, change, shard=shard, rows=rows)

    def result(self, training: Training | None = None) -> xr.Dataset:
        """cosine, js [layer, head]; layer_cosine, layer_js [layer]; what depth has to do with it.

        training  how the second model came from the first, if that is known
        """
        variables = self._means("cosine", "cosine of the maps", "1", self.cosine)
        variables |= self._means("js", "Jensen-Shannon divergence of the maps", "nats", self.js)
        if self.padded is not None:
            words = "cosine of the padded maps, rows of padding included"
            variables |= self._means("cosine_padded", words, "1", self.padded)
        change = 1 - ratio_of(self.cosine, self.examples).mean(2)  # [replicate, layer]
        documents = self.scope.documents
        variables |= by_depth(change, documents=documents)
        if training is not None:
            variables |= beside_training(change, training, documents=documents)
        return labelled(variables)

    def _means(self, name: str, words: str, units: str, total: Sums) -> dict[str, Variable]:
        """The mean over examples of each head, each layer and the model."""
        draws = ratio_of(total, self.examples)  # [replicate, layer, head]
        kinds = {
            name: (draws, ("layer", "head"), words),
            f"layer_{name}": (draws.mean(2), ("layer",), f"{words}, mean over heads"),
            f"model_{name}": (draws.mean((1, 2)), (), f"{words}, mean over all heads"),
        }
        return {
            key: Variable(
                estimate(found, documents=self.scope.documents), dims, long_name, units, SOURCE
            )
            for key, (found, dims, long_name) in kinds.items()
        }  # fmt: skip


# --- two maps ---------------------------------------------------------------------------------


def alike(before: torch.Tensor, after: torch.Tensor, lengths: npt.NDArray[np.int64]) -> Float64:
    """[example, head, 2] the cosine of two maps taken as vectors, and their divergence.

    before, after  [example, head, query, key] probabilities; rows of real queries sum to 1
    lengths        [example] queries and keys from there on are left out
    returns        the cosine Σ ab / √(Σ a² Σ b²), from 0 to 1 (Kovaleva et al. 2019, §4.3); and the
                   Jensen-Shannon divergence of a query's weights, mean over queries, from 0 to ln 2
                   nats. Equal maps give exactly 1 and 0
    """
    if compiled(before) and compiled(after):
        sums = np.zeros((*before.shape[:2], 4))
        kernels.alike(before.contiguous().numpy(), after.contiguous().numpy(), lengths, sums)
        sums[..., 3] *= LN2
    else:
        sums = _sums(before, after, lengths)
    cosine = sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2])
    js = np.clip(sums[..., 3] / lengths[:, None], 0, LN2)  # rounding leaves it a little outside
    return np.stack([np.minimum(cosine, 1), js], -1)  # [example, head, 2]


def _sums(before: torch.Tensor, after: torch.Tensor, lengths: npt.NDArray[np.int64]) -> Float64:
    """[example, head, 4] what `kernels.alike` gives, in nats; for any device and precision."""
    queries, keys = before.shape[2:]
    n = torch.from_numpy(lengths).to(before.device)[:, None, None, None]
    row, column = (torch.arange(size, device=before.device) for size in (queries, keys))
    real = (row[:, None] < n) & (column < n)  # [example, 1, query, key]
    a, b = (maps.masked_fill(~real, 0) for maps in (before, after))
    entropy = torch.special.entr
    apart = entropy((a + b) / 2) - (entropy(a) + entropy(b)) / 2
    rows = [to_float64(part.sum(-1)) for part in (a * b, a * a, b * b, apart)]
    return np.stack([part.sum(-1) for part in rows], -1)  # [example, head, 4]
