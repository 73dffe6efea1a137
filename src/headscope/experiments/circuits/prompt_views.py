"""Computes what every head does on single prompts, for the page that shows them.

The parts are those of the other modules, each prompt by itself: the probability, rank and loss of
every token that came; what each head writes to the answer, by source token (`direct_logits`); what
of the logit difference is lost when a head is switched off (its mixture is zero, or its mean, as in
`ablate`); and the paths (`head_paths`) between some heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.claims.terms import ELHAGE, OURS, WANG
from headscope.core.accumulators import Float64, Ints
from headscope.core.display import printable
from headscope.core.head_names import Head, counting_from
from headscope.core.results import labelled, largest_first, tabled
from headscope.corpus.document import Example
from headscope.errors import ModelError
from headscope.experiments.circuits.direct_logits import SOURCE, written
from headscope.experiments.circuits.discovery.layer_parts import VIA
from headscope.experiments.circuits.head_paths import one_by_one, path_changes
from headscope.experiments.circuits.head_swaps import AskedBatch, asked_batches, differences
from headscope.experiments.circuits.prompts import PromptSet
from headscope.experiments.circuits.score_parts import strongest_writers
from headscope.model.batch import to_float64
from headscope.model.instrument import Instrument
from headscope.model.language_model import LanguageModel
from headscope.model.layer import LayerView
from headscope.model.model import evaluating, forward
from headscope.model.shared_prefix import WholePass
from headscope.model.variants import mean_mixtures

FOLLOWED = 10  # heads between which paths are followed
WRITERS = 5  # parts that are named for a query, and for a key
TOLD = ("probability", "rank", "loss")  # of a token that came, or that could come
# name → its dimensions, what it is, its unit, its source
VARIABLES = {
    "token_text": ("prompt token", "the tokens", "1", OURS),
    "told": ("prompt number token", "of the token that came", "1", OURS),
    "choices": ("prompt end", "tokens that count as it", "1", OURS),
    "outcome_text": ("prompt end", "what may follow", "1", OURS),
    "outcome": ("prompt number end", "of what may follow", "1", OURS),
    "difference": ("prompt", "answer less wrong one", "logits", SOURCE),
    "direct": ("prompt layer head", "written directly to the answer", "logits", SOURCE),
    "rest": ("prompt part", "written by what is no head", "logits", SOURCE),
    "lost": ("prompt layer head", "lost when the head is switched off", "logits", OURS),
    "lost_mean": ("prompt layer head", "lost when the head gives its mean", "logits", OURS),
    "source": ("prompt layer head token", "written to the answer from a token", "logits", SOURCE),
    "to_answer": (
        "prompt layer head token",
        "written to the answer's own logit, above the mean of all tokens",
        "logits",
        SOURCE,
    ),
    "attention": ("prompt layer head token", "of the last token", "probability", OURS),
    "followed": ("sender", "heads between which paths go", "1", OURS),
    "path": ("prompt sender receiver via", "that a path brings back", "logits", WANG),
    "looked_at": ("prompt sender", "the last token's strongest key", "1", OURS),
    "writer": ("prompt sender side place", "part that wrote most of that score", "1", ELHAGE),
    "wrote": ("prompt sender side place", "of it, less other keys' mean", "1", ELHAGE),
    "gap": ("prompt", "that the corrupted prompt takes", "logits", WANG),
}


def prompt_views(
    model: LanguageModel,
    every: PromptSet,
    *,
    shown: int,
    followed: Sequence[Head] = (),
    batch_tokens: int,
) -> xr.Dataset:
    """The group `prompts`: the data of the page for the first `shown` prompts.

    every     prompts, clean and corrupted, over which the mean of a head's mixture is taken
    followed  heads (layer, head) between which paths are followed; wants corrupted prompts
    returns   token_text[prompt, token] and `told` of it, its probability, rank and loss after the
              tokens before it; outcome_text[prompt, end] and outcome of the answer and the wrong
              one, of `choices` the likeliest; difference[prompt] of their logits; direct, lost,
              lost_mean[prompt, layer, head] and rest[prompt, part] in logits; source, to_answer and
              attention[prompt, layer, head, token] of the last token; of followed heads their
              units, path[prompt, sender, receiver, via] and gap[prompt] in logits; and `_writers`
    raises    ModelError as `written` and `head_swaps`
    """
    encoded = every.part(range(min(shown, len(every.clean))))
    parts = written(model, encoded.clean, encoded, batch_tokens=batch_tokens)
    all_tokens: Any = [slice(None)] * len(encoded.clean)
    alone = written(
        model, encoded.clean, replace(encoded, wrong=all_tokens), batch_tokens=batch_tokens
    )
    examples = [*every.clean, *every.corrupted]
    batches = (one.batch for one in asked_batches(model.model, examples, batch_tokens=batch_tokens))
    usual = mean_mixtures(model.model.network, batches)
    lost, lost_mean = (
        _lost(model, encoded, one, batch_tokens=batch_tokens) for one in (None, usual)
    )
    choices = list(zip(encoded.right, encoded.wrong, strict=True))
    reads = [_read(model, *one) for one in zip(encoded.clean, choices, strict=True)]
    name = partial(_text, model)
    texts = zip_longest(*(map(name, one.input_ids) for one in encoded.clean), fillvalue="")
    rest = np.stack([parts.mlps.sum(1), parts.embedding, parts.bias], 1)
    by_token = parts.sources, alone.sources, [one.attention for one in reads]
    source, to_answer, attention = (_padded(some).astype(np.float32) for some in by_token)
    values: dict[str, Any] = {
        "token_text": np.array(list(texts)).T,
        "told": _padded([one.told for one in reads]),
        "choices": np.array([list(map(len, one)) for one in choices]),
        "outcome_text": np.array([list(map(name, one.ends)) for one in reads]),
        "outcome": np.stack([one.outcome for one in reads]),
        "difference": parts.difference,
        "direct": parts.heads,
        "rest": rest,
        "lost": lost,
        "lost_mean": lost_mean,
        "source": source,
        "to_answer": to_answer,
        "attention": attention,
    }
    if followed:
        path, gap = path_changes(model, encoded, followed, followed, batch_tokens=batch_tokens)
        units = np.array([layer * parts.heads.shape[2] + head for layer, head in followed])
        values |= {"followed": units, "path": path, "gap": gap}
        values |= _writers(model, encoded, followed)
    return _labelled(values).assign_attrs(prompts=encoded.kind, tidy=0)


def _writers(model: LanguageModel, prompts: PromptSet, heads: Sequence[Head]) -> dict[str, Any]:
    """Where each head looks from the last token, and what wrote the score: names count from 1.

    returns  nothing for a family that norms its queries in a way of its own
    """
    by_prompt = []
    with counting_from(1), suppress(ModelError):
        for one in prompts.clean:
            by_prompt.append(strongest_writers(model.model, one, heads, count=WRITERS))
    if len(by_prompt) < len(prompts.clean):
        return {}
    shape = (len(by_prompt), len(heads), 2, WRITERS)
    names, values = np.full(shape, "", dtype=object), np.full(shape, np.nan)
    for at in np.ndindex(*shape[:3]):
        prompt, head, side = at
        for place, (name, value) in enumerate(by_prompt[prompt][head][1][side]):
            names[*at, place], values[*at, place] = name, value
    keys = np.array([[key for key, _ in own] for own in by_prompt])
    return {"looked_at": keys, "writer": names.astype(str), "wrote": values}


def _labelled(values: dict[str, Any]) -> xr.Dataset:
    coords = {
        "number": TOLD,
        "end": ("answer", "wrong"),
        "via": VIA,
        "part": ("mlps", "embedding", "bias"),
        "side": ("query", "key"),
    }
    dataset = labelled(tabled(values, VARIABLES), coords=coords)
    for variable in dataset.data_vars.values():
        variable.attrs["tidy"] = 0
    return dataset


def _lost(
    model: LanguageModel, prompts: PromptSet, instead: torch.Tensor | None, *, batch_tokens: int
) -> Float64:
    """[prompt, layer, head] fall of the logit difference without a head.

    instead  [layer, head, dim] what each gives everywhere; None: nothing
    """

    def given(kept: WholePass, _: AskedBatch, layer: int) -> torch.Tensor:
        own = kept.mixtures[layer]  # [example, query, head, dim]
        return kept.stand_ins[layer] if instead is None else instead[layer].to(own).expand_as(own)

    without, whole = one_by_one(
        model,
        prompts.clean,
        prompts,
        given,
        lambda places, logits: to_float64(differences(prompts, places, logits)),
        batch_tokens=batch_tokens,
    )
    return whole[:, None, None] - without


@dataclass(frozen=True)
class _PlainPass:
    """One plain pass over a prompt: `told` [number, token], `outcome` [number, end] of the tokens
    `ends` that are likeliest of the answers and of the wrong ones, `attention` [layer, head, token]
    of the last token.
    """

    told: Float64
    ends: Ints
    outcome: Float64
    attention: Float64


def _read(model: LanguageModel, example: Example, choices: Sequence[Ints]) -> _PlainPass:
    rows, size, ids = list[torch.Tensor](), len(example), example.input_ids

    def look(view: LayerView) -> None:
        rows.append(view.attention[0, :, size - 1, :size])  # a batch may be padded

    batch = model.model.batch([example])
    with evaluating(model.model.network), Instrument(model.model.network, observers=[look]):
        logits = forward(model.model.network, *batch.inputs, keep=False).logits[0, :size]
    numbers = np.full((len(TOLD), size), np.nan)
    for at in range(1, size):  # one row at a time: vocabularies are large
        numbers[:, at : at + 1] = _numbers(logits[at - 1], ids[at : at + 1])
    ends = np.array([some[int(logits[-1, some].argmax())] for some in choices])
    return _PlainPass(numbers, ends, _numbers(logits[-1], ends), to_float64(torch.stack(rows)))


def _text(model: LanguageModel, token: int) -> str:
    written = model.model.tokenizer.decode([int(token)]).replace("\n", "↵")
    return printable(written) or model.model.tokens([token])[0]


def _numbers(logits: torch.Tensor, ids: Ints) -> Float64:
    """[number, token] probability, rank from 1, and loss in nats of tokens; logits [vocabulary]."""
    log_p = to_float64(logits.log_softmax(-1, dtype=torch.float64))
    own = log_p[ids]
    return np.stack([np.exp(own), 1.0 + (log_p > own[:, None]).sum(1), -own])


def _padded(some: Sequence[Float64]) -> Float64:
    """[prompt, …, token] of arrays [..., token]; NaN behind the tokens of a prompt."""
    longest = max(rows.shape[-1] for rows in some)
    whole = np.full((len(some), *some[0].shape[:-1], longest), np.nan)
    for row, rows in zip(whole, some, strict=True):
        row[..., : rows.shape[-1]] = rows
    return whole


def followed_heads(*values: Float64) -> list[Head]:
    """FOLLOWED heads (layer, head), taken in turn from the largest of each of the values [layer,
    head].

    They stand in the order of the layers.
    """
    most = (largest_first(np.abs(one)) for one in values)
    order: dict[Any, None] = dict.fromkeys(chain.from_iterable(zip(*most, strict=True)))
    return sorted(list(order)[:FOLLOWED])
