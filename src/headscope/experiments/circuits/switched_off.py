"""Tests whether a model stops copying without some heads, compared with random heads.

    dataset = hs.prompts.switch_off("gpt2", {"induction": [(5, 5), (6, 9)]})
    dataset["off_loss"]

On random tokens that come twice a head that is off gives everywhere its mean over these inputs.
Beside each set of heads as many others are off, drawn from the same layers, again for every
sequence: an interval over sequences is then one over draws, too. A model that is merely damaged
does worse on tokens that come for the first time as well: that much is taken off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np
import torch
import xarray as xr

from headscope.claims.terms import OURS
from headscope.core.accumulators import REPLICATES, Float64, generator
from headscope.core.head_names import Head
from headscope.core.progress import one_by_one
from headscope.core.results import Variable, labelled, largest_first
from headscope.errors import InputError
from headscope.experiments.circuits.direct_logits import decoder
from headscope.experiments.circuits.made_inputs import Repeats, repeats
from headscope.experiments.circuits.over_items import mean_over
from headscope.model.attention import AttentionCall, listening
from headscope.model.batch import to_float64
from headscope.model.language_model import ModelLike, TokenLoss
from headscope.model.model import Model, Shape, evaluating, forward
from headscope.model.request import BATCH_TOKENS
from headscope.model.variants import check
from headscope.run.experiment import in_parts

SEQUENCES = 30  # on which heads are off
OFF, HALVES = ("none", "these", "random"), ("first time", "again")
Sets = Mapping[str, Sequence[Head]]


def switch_off(
    model: ModelLike,
    sets: Sets,
    *,
    sequences: int = SEQUENCES,
    length: int = 50,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    replicates: int = REPLICATES,
) -> xr.Dataset:
    """The loss on repeated random tokens without sets of heads, and without random sets of equal
    size.

    model      a decoder with its language-model head: a folder, a hub id, what `load` gives
    sets       name -> heads (layer, head), both from 0, that are off together
    sequences  made inputs, each of length tokens that come twice: others than those of `circuits`
               by the same seed
    returns    off_loss[set, off, half] in nats per token, off = none, these, random; off_more[set]
               by how much more these cost than random ones on tokens that come again, less the
               same on tokens that come first; with intervals over sequences
    raises     InputError for a head that is not there, for a set of none or of more than half of
               all heads, and as `circuits` for sequences; ModelError as `direct_logits`
    """
    own = decoder(model).model
    made = repeats(own, sequences=sequences, length=length, seed=seed, held_out=True)
    sets = {name: sorted(set(heads)) for name, heads in sets.items()}
    check(
        map(frozenset, sets.values()),
        own.shape.names,
        layers=own.shape.layers,
        heads=own.shape.heads,
    )
    for heads in sets.values():
        refuse_many(len(heads), own.shape, least=1)
    losses = losses_off(own, made, sets, seed=seed, batch_tokens=batch_tokens)
    return off_result(losses["losses"], made, sets, replicates=replicates)


def refuse_many(count: int, shape: Shape, *, least: int = 0) -> None:
    """Raises InputError if the model has too few other heads to compare with."""
    most = shape.layers * shape.heads // 2
    if not least <= count <= most:
        raise InputError(
            f"found {count} heads to switch off; wanted {least} to {most}, so that as many of "
            f"{shape.size} others can be off for comparison"
        )


def best_heads(circuits: xr.Dataset, count: int) -> dict[str, list[Head]]:
    """The strongest heads of each kind, up to a number; a kind with fewer heads is left out."""
    gain = circuits["score"] - circuits["null"]
    does = {kind: gain.sel(circuit=kind) for kind in gain["circuit"].values.tolist()}
    named = {"copying": "copied_attention", "retrieval": "retrieval"}
    does |= {kind: circuits[name] for kind, name in named.items() if name in circuits}
    most = {
        kind: largest_first(np.where(one.values > 0, one.values, np.nan))[:count]
        for kind, one in does.items()
    }
    return {kind: heads for kind, heads in most.items() if len(heads) == count}


def losses_off(
    model: Model, made: Repeats, sets: Sets, *, seed: int, batch_tokens: int
) -> dict[str, Float64]:
    """`losses` [sequence, set, off, half] in nats per token.

    batch_tokens  of one forward pass, about
    """
    shape, (count, tokens) = model.shape, made.ids.shape
    losses = np.zeros((count, len(sets), len(OFF), len(HALVES)))
    off = torch.zeros((*losses.shape[:3], shape.layers, shape.heads), dtype=torch.bool)
    for row, (at, (name, heads)) in product(range(count), enumerate(sets.items())):
        draw = generator(seed, "switched off", name, str(row))
        for place, some in enumerate((heads, _others(heads, shape, draw)), 1):
            off[(row, at, place, *np.transpose(some))] = True
    parts = list(in_parts(range(count), lambda _: tokens, tokens=batch_tokens))
    passes, sums = list(product(parts, range(len(sets)), (1, 2))), list[torch.Tensor]()
    with evaluating(model.network):
        for rows in parts:
            heard = _MeanMixtures(tokens)
            losses[rows, :, 0] = _losses(model, made, rows, heard)[:, None]
            sums.append(torch.stack(heard.sums))  # [layer, head, dim]
        means = torch.stack(sums).sum(0) / (count * tokens)
        for rows, at, place in one_by_one(passes, "heads off", "passes", len(passes)):
            heard = _MeanMixtures(tokens, means, off[rows, at, place])
            losses[rows, at, place] = _losses(model, made, rows, heard)
    return {"losses": losses}


def _others(heads: Sequence[Head], shape: Shape, draw: np.random.Generator) -> list[Head]:
    """Equally many other heads, of the same layers, or of any where these have too few."""
    every = list(product(range(shape.layers), range(shape.heads)))
    left = [every[at] for at in draw.permutation(len(every)) if every[at] not in heads]
    chosen = list[Head]()
    for layer, _ in heads:
        chosen.append(next((one for one in left if one[0] == layer), left[0]))
        left.remove(chosen[-1])
    return chosen


class _MeanMixtures:
    """A listener that averages the mixtures of each layer, then replaces those of some heads.

    means  [layer, head, dim]
    off    [example, layer, head] which heads give their mean; None: none
    sums   [layer] of [head, dim] over examples and their first `tokens`
    """

    def __init__(
        self, tokens: int, means: torch.Tensor | None = None, off: torch.Tensor | None = None
    ) -> None:
        self.tokens, self.means, self.off = tokens, means, off
        self.sums: list[torch.Tensor] = []

    def before(self, call: AttentionCall) -> None:
        """Mix the values."""
        mixed, at = call.mix(), len(self.sums)  # [example, head, query, dim]
        self.sums.append(mixed[:, :, : self.tokens].sum((0, 2), dtype=torch.float64).cpu())
        if self.off is not None and self.means is not None:
            off = self.off[:, at, :, None, None].to(mixed.device)
            mixed = torch.where(off, self.means[at][:, None].to(mixed), mixed)
        call.mixed = mixed


def _losses(model: Model, made: Repeats, rows: Sequence[int], heard: _MeanMixtures) -> Float64:
    """[sequence, half] cross-entropy of the random tokens, without the first of each half."""
    first = made.opening + np.arange(made.length - 1)
    positions = np.concatenate([first, first + made.length])
    right = made.ids[rows][:, positions + 1]
    objective = TokenLoss("next token", [positions] * len(rows), list(right))
    batch, network = model.batch([made.repeated[row] for row in rows]), model.network
    run = partial(forward, network, *batch.inputs, keep=False)
    heads = listening(network, heard.before, alone=True)
    with torch.inference_mode():
        _, each = objective.read(network, run, range(len(rows)), seen_by=heads)
    return to_float64(each.view(len(rows), len(HALVES), -1).mean(-1))


def off_result(losses: Float64, made: Repeats, sets: Sets, *, replicates: int) -> xr.Dataset:
    """The variables of `switch_off`, from the losses of `losses_off`."""
    mean = partial(mean_over, [one.document for one in made.repeated], replicates=replicates)
    apart = losses[:, :, 1] - losses[:, :, 2]  # [sequence, set, half]
    nats = "nats per token"
    variables = {
        "off_loss": Variable(
            mean(losses), ("set", "off", "half"), "loss on random tokens with heads off", nats, OURS
        ),
        "off_more": Variable(
            mean(apart[..., 1] - apart[..., 0]),
            ("set",),
            "by how much more these heads cost than random ones on tokens that come again, less "
            "the same on those that come first",
            nats,
            OURS,
        ),
    }
    result = labelled(variables, coords={"set": list(sets), "off": OFF, "half": HALVES})
    for name in result.data_vars:
        result[name].attrs["n"] = len(made.repeated)
    return result
