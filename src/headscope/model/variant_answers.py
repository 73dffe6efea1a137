"""Computes the answers of the whole model and of each ablated variant to all examples.

Examples of similar length run together, so few of them that all variants of a layer fit into one
forward pass beside them; memory depends on `batch_tokens`, not on the data. `naive` is the plain
way, one full forward pass for every variant, by the instrument's interventions. It serves the
families for which `SharedPrefix` does not work, which is checked against it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import ModelError
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.model import Model, evaluating, forward
from headscope.model.request import BATCH_TOKENS
from headscope.model.shared_prefix import SharedPrefix
from headscope.model.variants import StandIn, Variant, lowest_layer

TOLERANCE = 1e-5  # of the largest logit; float32 rounding through 24 layers stays below it
Answers = Callable[[Batch, Sequence[Variant]], torch.Tensor]


@dataclass(frozen=True)
class Way:
    """A way of running variants.

    name    "shared", "shared with projections" or "naive"
    reason  why it is not "shared"; else nothing
    """

    name: str
    reason: str = ""


WAYS = (Way("shared"), Way("shared with projections"), Way("naive"))


def choose_way(
    model: Model, examples: Sequence[Example], variants: Sequence[Variant], stand_in: StandIn
) -> Way:
    """The fastest way that agrees with `naive` on a few examples and variants.

    raises  ModelError if the whole model answers with what is no number
    """
    by_length = sorted(examples, key=len)
    batch = model.batch([by_length[0], by_length[len(by_length) // 2]])
    by_layer = {lowest_layer(variant): variant for variant in reversed(variants)}
    layers = sorted(by_layer)
    few = sorted({layers[0], layers[len(layers) // 2], layers[-1]})
    # The last: most heads at once, maybe in several layers.
    tried = [*(by_layer[layer] for layer in few), max(variants, key=len)]
    reasons = []
    with evaluating(model.network):
        wanted = naive(model.network, batch, tried, stand_in)
        if not wanted[0].isfinite().all():
            raise ModelError(
                f"{model.name!r} answers with NaN or infinity; wanted numbers: its training may "
                "have diverged (a lower rate, float32), or its weights are damaged"
            )
        largest = float(wanted.abs().max())
        allowed = max(TOLERANCE, 8 * torch.finfo(wanted.dtype).eps) * max(largest, 1)
        for way in WAYS[:-1]:
            try:
                with answering(model.network, way, stand_in) as answers:
                    gap = float((answers(batch, tried) - wanted).abs().max())
            except Exception as error:  # whatever a family's own code may do with what it is given
                reasons.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
                continue
            if gap <= allowed:
                return Way(way.name, "; ".join(reasons))
            reasons.append(f"answers differ by {gap:.1e}")
    return Way(WAYS[-1].name, reasons[-1])


def sweep(
    model: Model,
    examples: Sequence[Example],
    places: Sequence[int],
    variants: Sequence[Variant],
    answers: Answers,
) -> npt.NDArray[np.float32]:
    """[variant + 1, place, output] the logits of one batch of examples."""
    batch = model.batch([examples[at] for at in places])
    return answers(batch, variants).float().cpu().numpy()


def small_batches(
    examples: Sequence[Example], variants: Sequence[Variant], *, batch_tokens: int
) -> list[list[int]]:
    """Batches of examples, small enough that the variants of a layer fit beside them."""
    layers = [lowest_layer(variant) for variant in variants]
    widest = max((layers.count(layer) for layer in set(layers)), default=1)
    return list(batches(examples, budget=max(1, batch_tokens // widest)))


@contextmanager
def answering(
    network: PreTrainedModel, way: Way, stand_in: StandIn, *, batch_tokens: int = BATCH_TOKENS
) -> Iterator[Answers]:
    """Inside the context, a function (batch, variants) -> [variant + 1, example, output] logits."""
    if way.name == "naive":
        yield lambda batch, variants: naive(network, batch, variants, stand_in)
        return
    with SharedPrefix(network, stand_in, skip_projections=way.name == "shared") as prefix:
        yield lambda batch, variants: _shared(prefix, batch, variants, batch_tokens)


def _shared(
    prefix: SharedPrefix, batch: Batch, variants: Sequence[Variant], batch_tokens: int
) -> torch.Tensor:
    kept = prefix.whole(batch)
    logits = kept.logits.new_empty((len(variants) + 1, *kept.logits.shape))
    logits[0] = kept.logits
    at_once = max(1, batch_tokens // batch.input_ids.numel())
    for layer in {lowest_layer(variant) for variant in variants}:
        places = [at for at, variant in enumerate(variants) if lowest_layer(variant) == layer]
        for start in range(0, len(places), at_once):
            some = places[start : start + at_once]
            answers = prefix.variants(batch, kept, layer, [variants[at] for at in some])
            logits[[at + 1 for at in some]] = answers
    return logits  # [variant + 1, example, output]


def naive(
    network: PreTrainedModel, batch: Batch, variants: Sequence[Variant], stand_in: StandIn
) -> torch.Tensor:
    """[variant + 1, example, output] the logits, computed one variant after another; the whole
    model comes first.
    """
    logits = []
    for variant in (frozenset(), *variants):
        off = [stand_in.switching_off(variant)] if variant else []
        with Instrument(network, interventions=off):
            answer = forward(network, *batch.inputs)
        logits.append(answer.logits.detach())
    return torch.stack(logits)  # [variant + 1, example, output]
