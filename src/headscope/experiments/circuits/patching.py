"""Activation patching: which heads carry the difference between a prompt and a corrupted one.

    dataset = hs.prompts.patch_heads("gpt2", "ioi")
    dataset["effect"]

Activation patching (Wang et al. 2023): the corrupted prompt runs with z_h of one head as the clean
prompt has it, at all positions; its effect is the share of the logit difference between the two
that comes back. Attribution patching (Nanda 2023) estimates all of them by one backward pass,
(z_clean - z_corrupt) · ∂m/∂z at the corrupted prompt; the rank correlation of the two stands
beside them. The share that a head writes directly to the answer is in the same unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
import torch
import xarray as xr
from transformers import PreTrainedModel

from headscope.claims.terms import NANDA, WANG
from headscope.core.accumulators import REPLICATES, Float64, left_out, means_over
from headscope.core.intervals import (
    estimate_correlation,
    spearman_over_units,
)
from headscope.core.results import Variable, labelled
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.experiments.ablation.effects import corrected, two_sided
from headscope.experiments.circuits.direct_logits import SOURCE, decoder, prompt_set, written
from headscope.experiments.circuits.head_swaps import (
    AskedBatch,
    asked_batches,
    differences,
    head_swaps,
    in_common,
)
from headscope.experiments.circuits.over_items import (
    FEWEST_ITEMS,
    about,
    accuracy,
    accuracy_variable,
    mean_over,
    share_over,
)
from headscope.experiments.circuits.own_prompts import PromptLike
from headscope.experiments.circuits.prompts import PromptSet
from headscope.experiments.circuits.readout import asking_last
from headscope.experiments.importance.gradients import frozen
from headscope.model.attention import AttentionCall, listening
from headscope.model.batch import to_float64
from headscope.model.language_model import LanguageModel, ModelLike, TokenLoss
from headscope.model.model import evaluating, run_network
from headscope.model.request import BATCH_TOKENS

WAYS = ("restore", "break")


def patch_heads(
    model: ModelLike,
    prompts: str | Sequence[PromptLike] | PromptSet = "ioi",
    *,
    way: str = "restore",
    positions: bool = False,
    count: int = 64,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    replicates: int = REPLICATES,
) -> xr.Dataset:
    """The effect of every head by activation patching, its estimate by attribution patching, and
    their agreement.

    model      a decoder with its language-model head: a folder, a hub id, what `load` gives
    prompts    as `direct_logits`, with corrupted ones of equal length
    way        "restore": clean into corrupted, as Wang et al.; "break": corrupted into clean
    positions  also by position; wants prompts of one length
    count      of a made set; seed likewise
    returns    effect, attribution, direct_share[layer, head]: shares of the logit difference
               between clean and corrupted, with intervals over items; effect_q[layer, head]
               that an effect is none, corrected within the heads; rho of effect and
               attribution, with its interval over heads; from, into: the logit differences;
               accuracy on clean prompts, and notes, as `direct_logits`
    raises     InputError and its kinds as `direct_logits`; also for prompts without corrupted ones
               of equal length
    """
    if way not in WAYS:
        raise InputError(f"no way {way!r} of patching; there are {', '.join(WAYS)}")
    language = decoder(model)
    encoded = prompt_set(language, prompts, count=count, seed=seed)
    encoded.need_pairs()
    if positions and len(lengths := {len(one) for one in encoded.clean}) > 1:
        raise InputError(
            f"prompts have {min(lengths)} to {max(lengths)} tokens; wanted one length for effects "
            "by position"
        )
    sides = (encoded.clean, encoded.corrupted)
    from_, into = sides if way == "restore" else sides[::-1]
    changes = patched_differences(
        language, from_, into, encoded, positions=positions, batch_tokens=batch_tokens
    )
    direct = [written(language, side, encoded, batch_tokens=batch_tokens) for side in (from_, into)]
    changes["direct_share"] = direct[0].heads - direct[1].heads
    changes["direct_gap"] = direct[0].difference - direct[1].difference
    clean = direct[0 if way == "restore" else 1].difference
    right = accuracy(encoded.items, clean, replicates=replicates)
    variables = _variables(changes, encoded, replicates) | {"accuracy": accuracy_variable(right)}
    return labelled(variables).assign_attrs(about(encoded, right), way=way)


def _variables(
    changes: dict[str, Float64], prompts: PromptSet, replicates: int
) -> dict[str, Variable]:
    share = partial(share_over, prompts.items, replicates=replicates)
    gap, over = changes["from"] - changes["into"], ("layer", "head")
    variables = {
        name: Variable(share(changes[name], of), (*over, *more), words, "1", source)
        for name, of, more, words, source in (
            ("effect", gap, (), "share of the logit difference that patching brings", WANG),
            ("attribution", gap, (), "the same as one backward pass estimates it", NANDA),
            (
                "direct_share",
                changes["direct_gap"],
                (),
                "share that is written to the answer",
                SOURCE,
            ),
            ("effect_of_position", gap, ("position",), "the same, patched at one position", WANG),
        )
        if name in changes
    }
    variables["effect_q"] = Variable(
        q_of(prompts.items, changes["effect"], replicates=replicates),
        over,
        "that the effect is none, corrected within the heads",
        "probability",
        "headscope",
    )
    variables["rho"] = Variable(
        _agreement(variables),
        (),
        "rank correlation of effect and attribution over heads",
        "1",
        "headscope",
        "heads",
    )
    mean = partial(mean_over, prompts.items, replicates=replicates)
    for name, words in (("from", "prompts whose heads are taken"), ("into", "prompts patched")):
        variables[name] = Variable(
            mean(changes[name]), (), f"logit difference of the {words}", "logits", WANG
        )
    return variables


def q_of(items: Sequence[str], changes: Float64, *, replicates: int = REPLICATES) -> Float64:
    """[layer, head] adjusted p-values of a mean change [prompt, layer, head]; NaN for few items."""
    draws = means_over(left_out(items, replicates=replicates), changes)
    if len(set(items)) < FEWEST_ITEMS:
        return np.full(draws[0].shape, np.nan)
    p = two_sided(draws)
    return corrected(p.ravel()).reshape(p.shape)


def _agreement(variables: dict[str, Variable]) -> Any:
    values: list[Any] = [variables[name].value for name in ("effect", "attribution")]
    one, other = (estimate.value.ravel() for estimate in values)
    return estimate_correlation(spearman_over_units(one, other))


def patched_differences(
    language: LanguageModel,
    from_: list[Example],
    into: list[Example],
    prompts: PromptSet,
    *,
    positions: bool,
    batch_tokens: int,
) -> dict[str, Float64]:
    """Changes of the logit difference [prompt, layer, head], and the differences [prompt].

    returns  effect, attribution, from, into; effect_of_position[prompt, layer, head, position] too
    """
    network, shape = language.model.network, language.model.shape
    objective = asking_last(into, prompts.right)
    size, tokens = (len(into), shape.layers, shape.heads), max(map(len, into))
    changes: dict[str, Float64] = {
        "effect": np.zeros(size),
        "attribution": np.zeros(size),
        "from": np.zeros(size[0]),
        "into": np.zeros(size[0]),
    } | ({"effect_of_position": np.zeros((*size, tokens))} if positions else {})
    shown = [
        asked_batches(language.model, side, batch_tokens=batch_tokens, heads=shape.heads)
        for side in (from_, into)
    ]
    cells = _cells(shape.heads, tokens if positions else 0)
    sides = list(zip(*shown, strict=True))
    if not positions:
        sides = list(starmap(in_common, sides))
    with evaluating(network):
        with head_swaps(network, objective, sides[0][1], batch_tokens=batch_tokens) as swaps:
            for clean, other in (map(swaps.read, side) for side in sides):
                measured = partial(differences, prompts, other.places)
                source, kept = swaps.whole(clean), swaps.whole(other)
                before = measured(kept.logits[None])
                changes["from"][other.places] = to_float64(measured(source.logits[None])[0])
                changes["into"][other.places] = to_float64(before[0])
                for layer, instead in enumerate(source.mixtures):
                    for start, logits in swaps.swapped(other, kept, layer, instead, cells):
                        for cell, change in zip(
                            cells[start:], to_float64(measured(logits) - before), strict=False
                        ):
                            _put(changes, (other.places, layer), cell, change)
        for clean, other in sides:
            worth = _attribution(network, objective, prompts, clean, other)
            changes["attribution"][other.places] = worth
    return changes


def _cells(heads: int, tokens: int) -> list[tuple[int, slice]]:
    """Each head at all positions; or, given a number of tokens, at each of them."""
    whole = [(head, slice(None)) for head in range(heads)]
    return whole + [(head, slice(at, at + 1)) for head in range(heads) for at in range(tokens)]


def _put(
    changes: dict[str, Float64],
    at: tuple[Sequence[int], int],
    cell: tuple[int, slice],
    change: Float64,
) -> None:
    head, queries = cell
    if queries.start is None:
        changes["effect"][(*at, head)] = change
    else:
        changes["effect_of_position"][(*at, head, queries.start)] = change


def _attribution(
    network: PreTrainedModel,
    objective: TokenLoss,
    prompts: PromptSet,
    clean: AskedBatch,
    other: AskedBatch,
) -> Float64:
    """[example, layer, head] (z_clean - z_other) · ∂m/∂z at the other prompt: one backward pass."""
    kept: list[list[torch.Tensor]] = []  # of each prompt, by layer: [example, head, query, dim]

    def keep(call: AttentionCall) -> None:
        call.mixed = call.mix()
        if torch.is_grad_enabled() and not call.mixed.requires_grad:
            call.mixed.requires_grad_()
        kept[-1].append(call.mixed)

    for one, mode in ((clean, torch.no_grad()), (other, torch.enable_grad())):
        kept.append(list[torch.Tensor]())
        with (
            mode,
            frozen(network),
            listening(network, keep, alone=True),
            objective.asking(network, one.places),
        ):
            logits = run_network(network, *one.batch.inputs).logits
    with torch.enable_grad():
        total = differences(prompts, other.places, logits[None]).sum()
        slopes = torch.autograd.grad(total, kept[1])
    with torch.no_grad():
        worth = [((a - b) * g).sum((2, 3)) for a, b, g in zip(*kept, slopes, strict=True)]
    return to_float64(torch.stack(worth, 1))
