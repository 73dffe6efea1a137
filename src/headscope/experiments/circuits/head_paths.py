"""Path patching between heads, function vectors, and the effect of even attention.

`path_patch` follows one path (Wang et al. 2023): the sender's mixture is that of the clean prompt,
all other heads keep what they gave in the corrupted one and only MLPs run again; what the receiver
then makes of its queries, keys or values alone goes into a run in which all else is free.
`function_vectors` (Todd et al. 2024) puts a head's mean over a task's prompts at the last token of
prompts whose examples have shuffled answers. `knockouts` makes a head's attention even.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import torch
import xarray as xr

from headscope.claims.terms import WANG
from headscope.core.accumulators import REPLICATES, Float64
from headscope.core.head_names import Head
from headscope.core.results import Variable, labelled
from headscope.corpus.document import Example
from headscope.experiments.circuits.direct_logits import decoder, prompt_set
from headscope.experiments.circuits.discovery.layer_parts import VIA
from headscope.experiments.circuits.head_swaps import (
    AskedBatch,
    asked_batches,
    differences,
    head_swaps,
)
from headscope.experiments.circuits.made_prompts import few_shots
from headscope.experiments.circuits.over_items import about, mean_over, share_over
from headscope.experiments.circuits.own_prompts import PromptLike
from headscope.experiments.circuits.patching import q_of
from headscope.experiments.circuits.prompts import PromptSet
from headscope.experiments.circuits.readout import asked_places, asking_last
from headscope.model.attention import AttentionCall, probabilities
from headscope.model.batch import Batch, to_float64
from headscope.model.language_model import LanguageModel, ModelLike
from headscope.model.model import evaluating
from headscope.model.request import BATCH_TOKENS
from headscope.model.shared_prefix import CopiedPass, SharedPrefix, WholePass
from headscope.model.variants import check

TODD = "Todd et al. 2024, average indirect effect"


def path_patch(
    model: ModelLike,
    prompts: str | Sequence[PromptLike] | PromptSet = "ioi",
    *,
    senders: Sequence[Head],
    receivers: Sequence[Head],
    count: int = 64,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    replicates: int = REPLICATES,
) -> xr.Dataset:
    """The effect of each path from a sender to a receiver above it, through Q, K or V.

    model               a decoder with its language-model head, as `direct_logits` takes it
    prompts             as `patch_heads`; count and seed likewise
    senders, receivers  heads (layer, head), both from 0
    returns             path[sender, receiver, via] the share of the logit difference that comes
                        back through the path, with intervals over items; NaN where the receiver is
                        not above the sender; heads are called "17.4", from 0
    raises              InputError and its kinds as `patch_heads`; also for a head that is not there

    Keys and values are those of the receiver alone, also where other heads share them.
    """
    language = decoder(model)
    shape = language.model.shape
    names = shape.names
    check([frozenset([*senders, *receivers])], names, layers=shape.layers, heads=shape.heads)
    encoded = prompt_set(language, prompts, count=count, seed=seed)
    encoded.need_pairs()
    changes, gap = path_changes(language, encoded, senders, receivers, batch_tokens=batch_tokens)
    share = share_over(encoded.items, changes, gap, replicates=replicates)
    told_as = "share of the logit difference that comes back through the path"
    variable = Variable(share, ("sender", "receiver", "via"), told_as, "1", WANG)
    coords = {
        "sender": [names.from_0(*one) for one in senders],
        "receiver": [names.from_0(*one) for one in receivers],
        "via": VIA,
    }
    return labelled({"path": variable}, coords=coords).assign_attrs(about(encoded))


def path_changes(
    language: LanguageModel,
    prompts: PromptSet,
    senders: Sequence[Head],
    receivers: Sequence[Head],
    *,
    batch_tokens: int,
) -> tuple[Float64, Float64]:
    """Changes [prompt, sender, receiver, via] of the logit difference, and the gap [prompt]."""
    changes = np.full((len(prompts.clean), len(senders), len(receivers), len(VIA)), np.nan)
    gap = np.zeros(len(prompts.clean))
    objective, network = asking_last(prompts.corrupted, prompts.right), language.model.network
    shown = [
        asked_batches(language.model, side, batch_tokens=batch_tokens)
        for side in (prompts.clean, prompts.corrupted)
    ]
    first = shown[1][0]
    with (
        evaluating(network),
        head_swaps(network, objective, first, batch_tokens=batch_tokens, kind=Paths) as swaps,
    ):
        for clean, other in zip(*shown, strict=True):
            measured = partial(differences, prompts, other.places)
            source, kept = swaps.whole(clean), swaps.whole(other)
            before = measured(kept.logits[None])
            gap[other.places] = to_float64((measured(source.logits[None]) - before)[0])
            calls = list(cast(Paths, swaps.prefix).calls)
            for at, (layer, head) in enumerate(senders):
                ready = kept.mixtures[layer].clone()
                ready[:, :, head] = source.mixtures[layer][:, :, head]
                heard = HeardPass(kept, layer, ready, [], calls, receivers)
                with torch.inference_mode(), objective.asking(network, other.places):
                    swaps.prefix.run(other.batch, heard)
                for place, mixtures in heard.heard.items():
                    logits = swaps.given(other, kept, receivers[place][0], mixtures)
                    changes[other.places, at, place] = to_float64((measured(logits) - before).T)
    return changes, gap


class Paths(SharedPrefix):
    """As `SharedPrefix`; also keeps the attention calls of the last whole pass."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.calls: list[AttentionCall] = []

    def whole(self, batch: Batch) -> WholePass:
        """As in `SharedPrefix`."""
        self.calls.clear()
        return super().whole(batch)

    def before(self, call: AttentionCall) -> None:
        """As in `SharedPrefix`."""
        if isinstance(self._pass, WholePass):
            self.calls.append(call)
        super().before(call)


@dataclass
class HeardPass(CopiedPass):
    """A pass in which heads above the changed layer keep their cached output; only MLPs run again.

    calls      by layer, the attention calls of the whole pass
    receivers  heads of which is taken down what they would make of what they hear
    heard      by place in `receivers`, [via * example, query, head, dim] the mixtures of its layer,
               the receiver's from its new queries, keys or values and otherwise the old ones
    """

    calls: list[AttentionCall]
    receivers: Sequence[Head]
    heard: dict[int, torch.Tensor] = field(default_factory=dict)

    def mixture(self, call: AttentionCall) -> torch.Tensor:
        """[row, query, head, dim] cached mixtures, above the changed layer too."""
        if self.at == self.start:
            return self.ready
        old = self.calls[self.at]
        whole = self.kept.mixtures[self.at]
        for place, (layer, head) in enumerate(self.receivers):
            if layer == self.at:
                heads = [self._mixed(old, call, via)[:, head] for via in VIA]
                rows = whole.repeat(len(VIA), 1, 1, 1, 1)  # [via, example, query, head, dim]
                rows[:, :, :, head] = torch.stack(heads)
                self.heard[place] = rows.flatten(0, 1)
        return whole

    @staticmethod
    def _mixed(old: AttentionCall, new: AttentionCall, via: str) -> torch.Tensor:
        """[example, head, query, dim] the mixture from new queries, keys or values."""
        query = (new if via == "q" else old).query
        keys, values = (new if via == "k" else old).keys, (new if via == "v" else old).values
        weights = probabilities(query, keys, old.mask, scaling=old.scaling, **old.options)
        return weights @ values


# --- one head alone ---------------------------------------------------------------------------


def function_vectors(
    model: ModelLike,
    task: str = "antonyms",
    *,
    shots: int = 5,
    count: int = 40,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    replicates: int = REPLICATES,
) -> xr.Dataset:
    """The average indirect effect of each head on a task shown by examples.

    model    a decoder with its language-model head: a folder, a hub id, what `load` gives
    task     "antonyms" or "capitals"; shots examples before each of count prompts, by the seed
    returns  indirect[layer, head] by how much the answer's probability rises in prompts whose
             examples have shuffled answers, when the head's mixture at the last token is its mean
             over the other prompts with right ones; with intervals over prompts; indirect_q that it
             is none, corrected within the heads; probability, shuffled_probability of the answer
    raises   InputError and its kinds as `direct_logits`
    """
    language = decoder(model)
    encoded = few_shots(task, language.model.tokenizer, shots=shots, count=count, seed=seed)
    own, right = _at_last(language, encoded, batch_tokens=batch_tokens)
    mean_of_others = (own.sum(0) - own) / max(len(own) - 1, 1)  # [prompt, layer, head, dim]

    def instead(kept: WholePass, one: AskedBatch, layer: int) -> torch.Tensor:
        mixed = kept.mixtures[layer].clone()
        mixed[asked_places(one.batch)] = mean_of_others[one.places, layer]
        return mixed

    after, before = one_by_one(
        language,
        encoded.corrupted,
        encoded,
        instead,
        partial(_answered, encoded),
        batch_tokens=batch_tokens,
    )
    changes = after - before[:, None, None]
    mean, over = partial(mean_over, encoded.items, replicates=replicates), ("layer", "head")
    p = "probability"
    return labelled(
        {
            "indirect": Variable(mean(changes), over, "rise of the answer's probability", p, TODD),
            "indirect_q": Variable(
                q_of(encoded.items, changes, replicates=replicates),
                over,
                "that the rise is none, corrected within the heads",
                p,
                "headscope",
            ),
            "probability": Variable(mean(right), (), "probability of the answer", p, TODD),
            "shuffled_probability": Variable(
                mean(before), (), "the same after shuffled examples", p, TODD
            ),
        }
    ).assign_attrs(about(encoded))


def _at_last(
    language: LanguageModel, prompts: PromptSet, *, batch_tokens: int
) -> tuple[torch.Tensor, Float64]:
    """[prompt, layer, head, dim] mixtures at the last tokens; [prompt] the answer's probability."""
    network, objective = language.model.network, asking_last(prompts.clean, prompts.right)
    shown = asked_batches(language.model, prompts.clean, batch_tokens=batch_tokens)
    right, own = np.zeros(len(prompts.clean)), []
    with (
        evaluating(network),
        head_swaps(network, objective, shown[0], batch_tokens=batch_tokens) as swaps,
    ):
        for one in shown:
            kept, places = swaps.whole(one), asked_places(one.batch)
            own.append(torch.stack([mixed[places] for mixed in kept.mixtures], 1))
            right[one.places] = _answered(prompts, one.places, kept.logits[None])[0]
    order = np.argsort([at for one in shown for at in one.places])
    return torch.cat(own)[order], right


def knockouts(
    model: ModelLike,
    prompts: str | Sequence[PromptLike] | PromptSet = "ioi",
    *,
    count: int = 64,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    replicates: int = REPLICATES,
) -> xr.Dataset:
    """How far the next token's distribution moves when a head attends evenly to all visible tokens.

    model    a decoder with its language-model head: a folder, a hub id, what `load` gives
    prompts  as `direct_logits`; count and seed likewise
    returns  kl[layer, head] KL(p ‖ p without the head's own attention) in nats, the mean over
             prompts with intervals over items
    raises   InputError and its kinds as `direct_logits`
    """
    language = decoder(model)
    encoded = prompt_set(language, prompts, count=count, seed=seed)
    base: dict[int, torch.Tensor] = {}

    def divergence(places: Sequence[int], logits: torch.Tensor) -> Float64:
        log_probabilities = logits.log_softmax(
            -1, dtype=torch.float64
        )  # [copy, example, vocabulary]
        for row, at in enumerate(places):
            base.setdefault(at, log_probabilities[0, row])  # the whole network comes first
        whole = torch.stack([base[at] for at in places])
        return to_float64((whole.exp() * (whole - log_probabilities)).sum(-1))

    after, _ = one_by_one(
        language,
        encoded.clean,
        encoded,
        lambda kept, _, layer: kept.stand_ins[layer],
        divergence,
        batch_tokens=batch_tokens,
        how="uniform",
    )
    mean = mean_over(encoded.items, after, replicates=replicates)
    words = "divergence of the next token when the head attends evenly"
    return labelled(
        {"kl": Variable(mean, ("layer", "head"), words, "nats", "headscope")}
    ).assign_attrs(about(encoded))


def one_by_one(
    language: LanguageModel,
    examples: Sequence[Example],
    prompts: PromptSet,
    instead: Callable[[WholePass, AskedBatch, int], torch.Tensor],
    measure: Callable[[Sequence[int], torch.Tensor], Float64],
    *,
    batch_tokens: int,
    how: str = "zero",
) -> tuple[Float64, Float64]:
    """A measure of the logits with each head replaced [prompt, layer, head], and of the whole model
    [prompt].

    measure  (places, logits [copy, example, vocabulary]) -> [copy, example]; of the whole first
    """
    network, shape = language.model.network, language.model.shape
    after, before = np.zeros((len(examples), shape.layers, shape.heads)), np.zeros(len(examples))
    shown = asked_batches(language.model, examples, batch_tokens=batch_tokens, heads=shape.heads)
    objective = asking_last(examples, prompts.right)
    cells = [(head, slice(None)) for head in range(shape.heads)]
    with (
        evaluating(network),
        head_swaps(network, objective, shown[0], batch_tokens=batch_tokens, how=how) as swaps,
    ):
        for one in shown:
            kept = swaps.whole(one)
            before[one.places] = measure(one.places, kept.logits[None])[0]
            for layer in range(shape.layers):
                stead = instead(kept, one, layer)
                for start, logits in swaps.swapped(one, kept, layer, stead, cells):
                    measured = measure(one.places, logits)  # [cell, example]
                    after[one.places, layer, start : start + len(measured)] = measured.T
    return after, before


def _answered(prompts: PromptSet, places: Sequence[int], logits: torch.Tensor) -> Float64:
    """[copy, example] the probability of the answers."""
    probabilities = logits.softmax(-1, dtype=torch.float64)
    return to_float64(
        torch.stack(
            [probabilities[:, row, prompts.right[at]].sum(-1) for row, at in enumerate(places)], 1
        )
    )
