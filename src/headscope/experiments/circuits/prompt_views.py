"""Reads what every head does after single prompts, for a page that shows them.

The parts are those of the other modules, each prompt by itself: the probability, rank and loss of
every token that came; what each head writes to the answer, by source token (`direct_logits`); what
of the logit difference is lost when a head is switched off (its mixture is zero, as in `ablate`);
and the paths (`head_paths`) between some heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.core.accumulators import Float64, Ints
from headscope.core.head_names import Head
from headscope.core.results import Variable, labelled, largest_first, printable
from headscope.core.terms import OURS, WANG
from headscope.corpus.document import Example
from headscope.experiments.circuits.direct_logits import SOURCE, Written, written
from headscope.experiments.circuits.head_paths import VIA, one_by_one, path_changes
from headscope.experiments.circuits.head_swaps import differences
from headscope.experiments.circuits.prompts import PromptSet
from headscope.experiments.importance.objectives import LanguageModel
from headscope.model.batch import to_float64
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import evaluating, forward

FOLLOWED = 10  # heads between which paths are followed
TOLD = ("probability", "rank", "loss")  # of a token that came, or that could come
OVER = ("prompt", "layer", "head")


def prompt_views(
    model: LanguageModel, asked: PromptSet, *, followed: Sequence[Head] = (), batch_tokens: int
) -> xr.Dataset:
    """The group `prompts`: what stands on the page of the prompts `asked`.

    followed  heads (layer, head) between which paths are followed; wants corrupted prompts
    returns   token_text[prompt, token] and `told` of it, its probability, rank and loss after the
              tokens before it; outcome_text[prompt, end] and outcome of the answer and the wrong
              one, of `choices` the likeliest; difference[prompt] of their logits; direct, lost
              [prompt, layer, head] and rest[prompt, part] in logits; source and attention
              [prompt, layer, head, token] of the last token; and, where heads are followed, their
              units, path[prompt, sender, receiver, via] and gap[prompt] in logits
    raises    ModelError as `written` and `head_swaps`
    """
    told = written(model, asked.clean, asked, batch_tokens=batch_tokens)
    without, whole = one_by_one(
        model, asked.clean, asked, lambda kept, _, layer: kept.stand_ins[layer],
        lambda places, logits: to_float64(differences(asked, places, logits)),
        batch_tokens=batch_tokens,
    )  # fmt: skip
    lost = whole[:, None, None] - without
    reads = [_read(model, example) for example in asked.clean]
    logits = "logits"
    variables = {
        **_tokens(model, asked, [scores for scores, _ in reads]),
        "difference": Variable(
            told.difference, ("prompt",), "logit of the answer less that of the wrong one", logits,
            SOURCE,
        ),
        "direct": Variable(told.heads, OVER, "written directly to the answer", logits, SOURCE),
        "rest": Variable(
            np.stack([told.mlps.sum(1), told.embedding, told.bias], 1), ("prompt", "part"),
            "written by what is no head", logits, SOURCE,
        ),
        "lost": Variable(lost, OVER, "lost when the head is switched off", logits, OURS),
        **_by_source(told, [attention for _, attention in reads]),
    }  # fmt: skip
    if followed:
        path, gap = path_changes(model, asked, followed, followed, batch_tokens=batch_tokens)
        units = np.array([layer * told.heads.shape[2] + head for layer, head in followed])
        variables |= {
            "followed": Variable(units, ("sender",), "heads between which paths go", "1", OURS),
            "path": Variable(
                path, ("prompt", "sender", "receiver", "via"),
                "of the logit difference that comes back through the path", logits, WANG,
            ),
            "gap": Variable(gap, ("prompt",), "what the corrupted prompt takes", logits, WANG),
        }  # fmt: skip
    coords = {"number": TOLD, "end": ("answer", "wrong"), "via": VIA,
              "part": ("mlps", "embedding", "bias")}  # fmt: skip
    dataset = labelled(variables, coords=coords).assign_attrs(prompts=asked.kind, tidy=0)
    for variable in dataset.data_vars.values():
        variable.attrs["tidy"] = 0
    return dataset


def _read(model: LanguageModel, example: Example) -> tuple[torch.Tensor, Float64]:
    """[token, vocabulary] log-probabilities of what comes next; [layer, head, token] last rows."""
    rows, size = list[torch.Tensor](), len(example)  # a batch may be padded

    def look(view: LayerView) -> None:
        rows.append(view.attention[0, :, size - 1, :size])

    batch = model.model.batch([example])
    with evaluating(model.model.network), Instrument(model.model.network, observers=[look]):
        logits = forward(model.model.network, *batch.inputs, keep=False).logits[0, :size]
    return logits.log_softmax(-1, dtype=torch.float64), to_float64(torch.stack(rows))


def _tokens(
    model: LanguageModel, asked: PromptSet, scores: Sequence[torch.Tensor]
) -> dict[str, Variable]:
    """The tokens and what may follow, with probability, rank and loss."""
    name, longest = partial(_text, model), max(map(len, asked.clean))
    told = np.full((len(scores), longest, len(TOLD)), np.nan)
    texts = np.full(told.shape[:2], "", object)
    outcome, choices, ends = np.zeros((len(scores), 2, len(TOLD))), np.ones((len(scores), 2)), []
    for at, (example, log_p) in enumerate(zip(asked.clean, scores, strict=True)):
        ids = example.input_ids
        texts[at, : len(ids)] = [name(one) for one in ids]
        told[at, 1 : len(ids)] = _numbers(log_p[:-1], ids[1:])
        best = [some[int(log_p[-1, some].argmax())] for some in (asked.right[at], asked.wrong[at])]
        outcome[at] = _numbers(log_p[[-1, -1]], np.array(best))
        ends.append([name(one) for one in best])
        choices[at] = [len(asked.right[at]), len(asked.wrong[at])]
    return {
        "token_text": Variable(texts.astype(str), ("prompt", "token"), "the tokens", "1", OURS),
        "told": Variable(told, ("prompt", "token", "number"), "of the token that came", "1", OURS),
        "choices": Variable(choices, ("prompt", "end"), "tokens that count as it", "1", OURS),
        "outcome_text": Variable(np.array(ends), ("prompt", "end"), "what may follow", "1", OURS),
        "outcome": Variable(outcome, ("prompt", "end", "number"), "of what may follow", "1", OURS),
    }


def _text(model: LanguageModel, token: int) -> str:
    written = model.model.tokenizer.decode([int(token)]).replace("\n", "↵")
    return printable(written) or model.model.tokens([token])[0]


def _numbers(log_p: torch.Tensor, ids: Ints) -> Float64:
    """[row, number] probability, rank from 1, and loss in nats of a token in each row."""
    own = log_p.gather(1, torch.from_numpy(ids)[:, None].to(log_p.device))  # [row, 1]
    ranks = 1.0 + (log_p > own).sum(1, keepdim=True)
    return to_float64(torch.cat([own.exp(), ranks, -own], 1))


def _by_source(told: Written, attention: Sequence[Float64]) -> dict[str, Variable]:
    longest = max(rows.shape[-1] for rows in told.sources)
    found = {}
    for name, words, units, some in (
        ("source", "written to the answer from a token", "logits", told.sources),
        ("attention", "attention of the last token", "probability", attention),
    ):
        padded = [
            np.pad(rows, [(0, 0), (0, 0), (0, longest - rows.shape[-1])], constant_values=np.nan)
            for rows in some
        ]
        values = np.stack(padded).astype(np.float32)
        found[name] = Variable(values, (*OVER, "token"), words, units, SOURCE)
    return found


def followed_heads(*values: Float64) -> list[Head]:
    """FOLLOWED heads (layer, head), in turn the largest of each of the values [layer, head].

    They stand in the order of the layers.
    """
    most = (largest_first(np.abs(one)) for one in values)
    order: dict[Any, None] = dict.fromkeys(chain.from_iterable(zip(*most, strict=True)))
    return sorted(list(order)[:FOLLOWED])
