"""Measures the similarity of each head to the same head of another model.

Per example the cosine of the two flattened maps, special tokens included, padding cut off; then the
mean over examples (Kovaleva et al. 2019, §4.3). Beside it the Jensen-Shannon divergence, which does
not forgive small weights. The authors' notebook flattens maps that are padded to a fixed length,
with the rows that padding attends by: `padded_to` gives that cosine too.

They saw the last two layers change most, on all tasks but QQP. `headscope finetune` writes beside a
checkpoint, for every layer, the mean norm of its gradients and how far its weights have moved. So
the change of each layer stands beside its depth, and beside how much it learned.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from scipy.stats import permutation_test, rankdata

from headscope.core.accumulators import Float64, Ints, Sums, correlation, generator
from headscope.core.head_names import HeadNames
from headscope.core.intervals import (
    FEWEST,
    drawn_anew,
    estimate,
    estimate_correlation,
    spearman_over_units,
)
from headscope.core.results import Variable, labelled
from headscope.errors import ModelError
from headscope.experiments.comparison.paired_inputs import MostChanged
from headscope.model import kernels
from headscope.model.batch import Batch, to_float64
from headscope.model.kernel_operations import LN2
from headscope.model.kernels import compiled
from headscope.model.long_attention import LongAttention
from headscope.run.analysis import Analysis, Scope, ratio_of, sizes_of
from headscope.tasks.remembered_task import TRAINING_RECORD

SOURCE = "Kovaleva et al. 2019, §4.3"
COSINE, JS = 0, 1
LAST = 2  # layers that may change most
MEASURES = {
    "gradient_norm": "norm of a layer's gradients, mean over the steps of the training",
    "relative_change": "how far a layer's weights moved, of their own norm",
    "learning_rate": "largest learning rate of a layer",
}
DRAWS = 9999  # permutations; of seven layers or fewer all are tried
Maps = torch.Tensor | LongAttention
Training = Mapping[str, Float64]  # MEASURES by name, [layer]; NaN where it is not known


class Similarity(Analysis):
    """Sums over examples behind the similarity of two models' heads; see `alike`.

    It looks at two models at once, so it is not among the registered analyses.

    names      of the second model's heads
    padded_to  tokens that all batches are padded to; None: no padded cosine
    """

    name = "similarity"

    def __init__(self, scope: Scope, names: HeadNames, *, padded_to: int | None = None) -> None:
        super().__init__(scope)
        self.names = names
        grid = (scope.layers, scope.heads)
        self.cosine, self.js = self.sums(*grid), self.sums(*grid)
        self.padded = None if padded_to is None else self.sums(*grid)
        self.examples = self.sums()
        self.most = MostChanged()
        self._change: Float64 | None = None

    def observe_pair(self, layer: int, before: Maps, after: Maps, batch: Batch) -> None:
        """Add one layer of one batch; before, after [example, head, query, key], see `alike`."""
        likeness = alike(before, after, batch.lengths)  # [example, head, 2]
        if not np.isfinite(likeness).all():
            raise ModelError(
                f"attention of layer {self.names.layer(layer)} is not a number in one of the two "
                "models; wanted weights that are finite"
            )
        self.cosine.add(likeness[..., COSINE], batch.groups, at=(layer,))
        self.js.add(likeness[..., JS], batch.groups, at=(layer,))
        if self.padded is not None:
            whole = np.full_like(batch.lengths, before.shape[-1])
            cosine = alike(before, after, whole)[..., COSINE]
            self.padded.add(cosine, batch.groups, at=(layer,))
        change = (1 - likeness[..., COSINE]).mean(1)  # [example]
        self._change = change if layer == 0 or self._change is None else self._change + change

    def finish_batch(self, batch: Batch, *, shard: int, rows: Sequence[int]) -> None:
        """End a batch: the examples at these rows of a shard."""
        assert self._change is not None
        self.examples.add(np.ones(len(rows)), batch.groups)
        change = self._change / self.scope.layers
        self.most.add(batch.examples, change, shard=shard, rows=rows)

    def result(self, training: Training | None = None) -> xr.Dataset:
        """cosine, js [layer, head]; layer_cosine, layer_js [layer]; their relation to depth.

        training  how the second model came from the first, if that is known
        """
        variables = self._means("cosine", "cosine of the maps", "1", self.cosine)
        variables |= self._means("js", "Jensen-Shannon divergence of the maps", "nats", self.js)
        change = 1 - ratio_of(self.cosine, self.examples)  # [replicate, layer, head]
        turned = estimate(change, sizes=sizes_of(self.cosine, self.examples))
        words = "1 - cosine of the maps"
        variables["map_change"] = Variable(turned, ("layer", "head"), words, "1", SOURCE)
        if self.padded is not None:
            words = "cosine of the padded maps, rows of padding included"
            variables |= self._means("cosine_padded", words, "1", self.padded)
        change = change.mean(2)  # [replicate, layer]
        variables |= by_depth(change, self.examples.sums)
        if training is not None:
            variables |= beside_training(change, training)
        return labelled(variables)

    def _means(self, name: str, words: str, units: str, total: Sums) -> dict[str, Variable]:
        draws, sizes = ratio_of(total, self.examples), sizes_of(total, self.examples)
        kinds = {
            name: (draws, sizes, ("layer", "head"), words),
            f"layer_{name}": (
                draws.mean(2),
                sizes[..., 0],
                ("layer",),
                f"{words}, mean over heads",
            ),
            f"model_{name}": (
                draws.mean((1, 2)),
                sizes[:, 0, 0],
                (),
                f"{words}, mean over all heads",
            ),
        }
        return {
            key: Variable(estimate(drawn, sizes=size), dims, long_name, units, SOURCE)
            for key, (drawn, size, dims, long_name) in kinds.items()
        }


def alike(before: Maps, after: Maps, lengths: Ints) -> Float64:
    """[example, head, 2] the cosine of two maps as vectors, and their divergence.

    before, after  [example, head, query, key] probabilities; rows of real queries sum to 1. Of long
                   inputs both make blocks of them, which are compared and let go
    lengths        [example] queries and keys from there on are left out
    returns        the cosine Σ ab / √(Σ a² Σ b²), from 0 to 1 (Kovaleva et al. 2019, §4.3); and the
                   Jensen-Shannon divergence of a query's weights, mean over queries, from 0 to ln 2
                   nats. Equal maps give exactly 1 and 0
    """
    if isinstance(before, LongAttention) or isinstance(after, LongAttention):
        assert isinstance(before, LongAttention)
        assert isinstance(after, LongAttention)
        sums = _sums_of_blocks(before, after)
    elif compiled(before) and compiled(after):
        sums = np.zeros((*before.shape[:2], 4))
        kernels.alike(before.contiguous().numpy(), after.contiguous().numpy(), lengths, sums)
        sums[..., 3] *= LN2
    else:
        sums = _sums(before, after, lengths)
    cosine = sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2])
    js = np.clip(sums[..., 3] / lengths[:, None], 0, LN2)  # rounding leaves it a little outside
    return np.stack([np.minimum(cosine, 1), js], -1)  # [example, head, 2]


def _sums_of_blocks(before: LongAttention, after: LongAttention) -> Float64:
    """[example, head, 4] as `_sums`, for maps that are never whole."""
    sums = np.zeros((before.shape[0], before.shape[1], 4))
    for example, n in enumerate(before.mask.lengths):
        both = zip(before.row_blocks(example), after.row_blocks(example), strict=True)
        for (_, a), (_, b) in both:
            sums[example] += _sums(a[None], b[None], np.array([n]))[0]
    return sums


def _sums(before: torch.Tensor, after: torch.Tensor, lengths: Ints) -> Float64:
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


# --- depth and training -----------------------------------------------------------------------


def by_depth(change: Float64, sizes: Float64 | None = None) -> dict[str, Variable]:
    """Whether change grows with depth; empty for fewer than three layers.

    change  [replicate + 1, layer] 1 - cosine, mean over heads
    sizes   [replicate + 1] examples, all and without each group of documents

    In `last_are_first` no layer before the last two changes as much as either of them.
    """
    layers, source = change.shape[1], f"{SOURCE}; the statistic is ours"
    if layers <= LAST:
        return {}
    last, other = change[:, -LAST:], change[:, :-LAST]
    draws = {
        "last_change": (last.mean(1), f"1 - cosine, mean over the last {LAST} layers"),
        "other_change": (other.mean(1), "1 - cosine, mean over the layers before"),
        "last_minus_other": (last.mean(1) - other.mean(1), "how much more the last layers change"),
    }
    variables = {
        name: Variable(estimate(drawn, sizes=sizes), (), words, "1", source)
        for name, (drawn, words) in draws.items()
    }
    with_depth = spearman_over_units(change[0], np.arange(layers, dtype=np.float64))
    words = "rank correlation of 1 - cosine with depth"
    rho = Variable(estimate_correlation(with_depth), (), words, "1", source, "layers")
    variables["depth_correlation"] = rho
    anew = drawn_anew(change)  # [draw, layer]
    first = anew[:, -LAST:].min(1) > anew[:, :-LAST].max(1)
    share = float(first.mean()) if len(change) > FEWEST else float("nan")
    words = "share of corpora drawn anew in which the last layers change most"
    return variables | {"last_are_first": Variable(share, (), words, "probability", source)}


def read_training(
    checkpoint: str | Path, *, layers: int, numbers: Sequence[int] = ()
) -> Training | None:
    """The record that `headscope finetune` wrote beside a checkpoint; None without one.

    layers   of the checkpoint, those without attention too
    numbers  of the layers that attend, from 0; none: all do
    raises  ModelError if the record is damaged, or of a network with other layers
    """
    file = Path(checkpoint) / TRAINING_RECORD
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text("utf-8"))
        known = {int(row["layer"]): row for row in record["layers"] if row["layer"] is not None}
        rows = [known[layer] for layer in (numbers or sorted(known)) if layer in known]
        keys = dict(zip(MEASURES, ("gradient_norm", "relative_change", "rate"), strict=True))
        arrays = {
            name: np.array([row.get(key) for row in rows], np.float64)  # None becomes NaN
            for name, key in keys.items()
        }
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelError(
            f"{file} is no record of a training ({type(error).__name__}: {str(error)[:80]}); "
            "make the checkpoint again with headscope finetune, or delete the file"
        ) from error
    if sorted(known) == [0] and layers > 1:  # one layer, used again and again (ALBERT)
        return None
    if sorted(known) != list(range(layers)):
        raise ModelError(
            f"{file} lists {len(known)} layers, and the checkpoint has {layers}; wanted the "
            "record of this checkpoint: delete the file if it is of another"
        )
    return arrays


def beside_training(change: Float64, training: Training) -> dict[str, Variable]:
    """Numbers of the training, and their correlation with the change of attention over layers.

    change   [replicate + 1, layer] 1 - cosine, mean over heads
    returns  gradient_norm, relative_change, learning_rate [layer]; and of the first two
             NAME_correlation        Spearman's, with 1 - cosine; the interval is over layers
             NAME_p                  how often layers in random order go together as closely
             NAME_depth_correlation  with the layer's number
    """
    depth = np.arange(change.shape[1], dtype=np.float64)
    variables: dict[str, Variable] = {}
    for name, words in MEASURES.items():
        values = training[name]
        if not np.isfinite(values).all():
            continue
        variables[name] = Variable(values, ("layer",), words, "1", "ours")
        if name == "learning_rate":
            continue
        together = estimate_correlation(spearman_over_units(change[0], values))
        by_chance, with_depth = chance_of(change[0], values), rank_correlation(values, depth)
        for key, value, what in (
            ("correlation", together, "rank correlation with 1 - cosine over layers"),
            ("p", by_chance, "p of that correlation, layers dealt out anew"),
            ("depth_correlation", float(with_depth), "rank correlation with depth"),
        ):
            variables[f"{name}_{key}"] = Variable(
                value, (), f"{words}: {what}", "1", "ours", "layers"
            )
    return variables


def rank_correlation(first: Float64, second: Float64) -> Float64:
    """[...] Spearman's correlation over the last axis, broadcast; NaN where one is constant."""
    return correlation(rankdata(first, axis=-1), rankdata(second, axis=-1))


def chance_of(first: Float64, second: Float64, *, seed: int = 0) -> float:
    """Two-sided p of the correlation over random orders of layers.

    NaN where one of both is constant.
    """
    if not np.isfinite(rank_correlation(first, second)):
        return float("nan")

    def closeness(dealt: Float64, axis: int = -1) -> Float64:
        return rank_correlation(np.moveaxis(dealt, axis, -1), second)

    test = permutation_test(
        (first,),
        closeness,
        permutation_type="pairings",
        n_resamples=DRAWS,
        vectorized=True,
        rng=generator(seed, "layers"),
    )
    return float(test.pvalue)
