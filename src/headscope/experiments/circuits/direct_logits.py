"""How much of a logit difference each head writes directly, by source token.

    dataset = hs.prompts.direct_logits("gpt2", "ioi")
    dataset["direct"]

A head adds Σ_j α_ij f_h(x_j) to the residual stream of the last token, and the final norm, at the
scale that it has there, and the unembedding of the right answer less that of the wrong one turn it
into logits (Elhage et al. 2021; Wang et al. 2023). Embeddings, MLPs and biases add the rest: the
parts add up to the logit difference, and are refused where they do not (see `residual_parts`). What
a head writes for other layers to read is not in it: that is what patching shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.core.accumulators import REPLICATES, Float64
from headscope.core.results import Variable, labelled
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.experiments.circuits.made_prompts import MADE, made_prompts
from headscope.experiments.circuits.over_items import (
    about,
    accuracy,
    accuracy_variable,
    mean_over,
)
from headscope.experiments.circuits.own_prompts import (
    PromptLike,
    as_prompt,
    read_prompts,
    unknown_prompts,
)
from headscope.experiments.circuits.prompts import PromptSet, encode_prompts
from headscope.experiments.circuits.readout import (
    asked_places,
    asking_last,
    decoder_of,
    output_head,
)
from headscope.experiments.circuits.residual_parts import BIASES, MLP, Cut, Parts, unlike
from headscope.model.batch import Batch, to_float64
from headscope.model.instrument import Instrument
from headscope.model.language_model import LanguageModel, ModelLike
from headscope.model.layer import LayerView
from headscope.model.model import evaluating, run_network
from headscope.model.request import BATCH_TOKENS
from headscope.tasks.task_request import language_model

SOURCE = "Elhage et al. 2021; Wang et al. 2023"


@dataclass(frozen=True)
class Written:
    """What each part of a network writes to the logit difference of each prompt.

    heads       [prompt, layer, head]
    mlps        [prompt, layer]
    embedding   [prompt] the residual stream before the first layer
    bias        [prompt] of output projections, norms, and the language-model head
    difference  [prompt] what the network told: right less wrong, before a final softcap
    sources     [prompt] each [layer, head, token]: of `heads`, by the token attended to
    loss, rank, probability  [prompt] of the right answer, the best of several; the rank from 1
    after       what the network does to the head's logits afterwards, in words; "" for nothing
    """

    heads: Float64
    mlps: Float64
    embedding: Float64
    bias: Float64
    difference: Float64
    sources: list[Float64]
    loss: Float64
    rank: Float64
    probability: Float64
    after: str = ""

    @property
    def rest(self) -> Float64:
        """[prompt] what the parts miss: rounding."""
        parts: Float64 = self.heads.sum((1, 2)) + self.mlps.sum(1) + self.embedding + self.bias
        return self.difference - parts


def direct_logits(
    model: ModelLike,
    prompts: str | Sequence[PromptLike] | PromptSet = "ioi",
    *,
    count: int = 64,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    replicates: int = REPLICATES,
) -> xr.Dataset:
    """What heads, MLPs, embedding and biases write to the logit of the answer less the wrong one.

    model    a decoder with its language-model head: a folder, a hub id, what `load` gives
    prompts  name of a made set, file of a table (`read_prompts`), or prompts
    count    of a made set; seed likewise
    returns  direct[layer, head], direct_mlp[layer], direct_embedding, direct_bias,
             logit_difference, the means over prompts with intervals over items; accuracy, the share
             of prompts with the answer above the wrong one; answer_loss, answer_rank and
             answer_probability[prompt]; direct_of_prompt[prompt, layer, head]. Where accuracy is
             not surely above one half, `notes` says so, and no head gets a label
    raises   InputError and its kinds for a model without head, an encoder, or answers that the
             tokenizer splits
    """
    language = decoder(model)
    encoded = prompt_set(language, prompts, count=count, seed=seed)
    parts = written(language, encoded.clean, encoded, batch_tokens=batch_tokens)
    mean = partial(mean_over, encoded.items, replicates=replicates)
    right = accuracy(encoded.items, parts.difference, replicates=replicates)
    logits = "logits"
    variables = {
        "direct": Variable(
            mean(parts.heads), ("layer", "head"), "written directly to the answer", logits, SOURCE
        ),
        "direct_mlp": Variable(mean(parts.mlps), ("layer",), "written by the MLP", logits, SOURCE),
        "direct_embedding": Variable(
            mean(parts.embedding), (), "written by the embedding", logits, SOURCE
        ),
        "direct_bias": Variable(mean(parts.bias), (), "written by all biases", logits, SOURCE),
        "logit_difference": Variable(
            mean(parts.difference),
            (),
            "logit of the answer less that of the wrong one",
            logits,
            SOURCE,
        ),
        "direct_of_prompt": Variable(
            parts.heads,
            ("prompt", "layer", "head"),
            "written directly to the answer",
            logits,
            SOURCE,
        ),
        "accuracy": accuracy_variable(right),
        **answer_variables(parts),
    }
    return labelled(variables).assign_attrs(about(encoded, right), logits=parts.after)


def answer_variables(parts: Written) -> dict[str, Variable]:
    """Loss, rank and probability of the answer, by prompt."""
    return {
        "answer_loss": Variable(parts.loss, ("prompt",), "loss of the answer", "nats", "headscope"),
        "answer_rank": Variable(parts.rank, ("prompt",), "rank of the answer", "1", "headscope"),
        "answer_probability": Variable(
            parts.probability, ("prompt",), "probability of the answer", "probability", "headscope"
        ),
    }


def decoder(model: Any) -> LanguageModel:
    """A decoder with its head, loaded if need be; InputError and its kinds for anything else."""
    language = language_model(model)
    decoder_of(language)
    return language


def prompt_set(
    model: LanguageModel, prompts: str | Sequence[PromptLike] | PromptSet, *, count: int, seed: int
) -> PromptSet:
    """Prompts by the name of a made set, from a table, or as they are given.

    raises  InputError and CorpusError as `made_prompts`, `read_prompts` and `encode_prompts`
    """
    if isinstance(prompts, PromptSet):
        return prompts
    tokenizer = model.model.tokenizer
    if not isinstance(prompts, str):
        return encode_prompts(tokenizer, [as_prompt(one) for one in prompts])
    if prompts in MADE:
        return made_prompts(prompts, tokenizer, count=count, seed=seed)
    if Path(prompts).suffix:
        return read_prompts(prompts, tokenizer)
    raise unknown_prompts(prompts)


# --- the parts of one pass --------------------------------------------------------------------


def written(
    model: LanguageModel, examples: Sequence[Example], prompts: PromptSet, *, batch_tokens: int
) -> Written:
    """The parts of the logit difference, for inputs that end where the answers are predicted.

    raises  ModelError for a network whose layers add something that is not known, or whose parts
            do not add up to what it told
    """
    network, parts = decoder_of(model), list[tuple[int, dict[str, Any]]]()
    objective, changed = asking_last(examples, prompts.right), False
    for places in batches(examples, budget=batch_tokens):
        batch, cut = (
            model.model.batch([examples[at] for at in places]),
            Cut(model.model, len(places)),
        )
        views, logits = list[LayerView](), list[torch.Tensor]()
        with (
            torch.enable_grad(),
            evaluating(network),
            objective.asking(network, places),
            cut.watching(),
            output_head(network).register_forward_hook(
                lambda _m, _a, out, to=logits: to.append(out)
            ),
            Instrument(network, observers=[views.append]),
        ):
            answer = run_network(network, *batch.inputs, keep=False).logits.detach()
        right, wrong = ([some[at] for at in places] for some in (prompts.right, prompts.wrong))
        with torch.no_grad():
            numbers = _answers(answer, right)
            changed |= not torch.equal(answer, logits[0])
        numbers |= _parts(cut, views, batch, logits[0], (right, wrong))
        cut.pieces.clear()  # they know the cut: without this a graph would outlive its batch
        parts += [
            (at, {name: value[row] for name, value in numbers.items()})
            for row, at in enumerate(places)
        ]
    rows = [row for _, row in sorted(parts, key=lambda one: one[0])]
    sources = [row.pop("sources")[..., : len(one)] for row, one in zip(rows, examples, strict=True)]
    return Written(
        **{name: np.stack([r[name] for r in rows]) for name in rows[0]},
        sources=sources,
        after="before the network's own softcap or scale" if changed else "",
    )


def _parts(
    cut: Cut,
    views: Sequence[LayerView],
    batch: Batch,
    logits: torch.Tensor,
    answers: tuple[Sequence[Any], Sequence[Any]],
) -> dict[str, Float64]:
    parts = Parts(type(cut.model.network).__name__, cut.pieces, logits)
    weights = torch.zeros_like(logits)  # [row, vocabulary]
    for row, *sides in zip(weights, *answers, strict=True):
        for ids, sign in zip(sides, (1, -1), strict=True):
            row[ids] += sign / len(row[ids])
    shares = dict(zip(parts.names, to_float64(parts.shares(logits, weights)).T, strict=True))
    rows, last = (one.cpu() for one in asked_places(batch))  # layers may be on several devices
    sources, mlps = [], []
    with torch.no_grad():
        for piece, grad in zip(parts.pieces, parts.gradients(logits, weights), strict=True):
            if piece.layer is None or grad is None:
                continue
            view = views[piece.layer]
            if view.values is None:
                raise unlike(view.site.path, "its values are not seen")
            back = grad[rows, last].to(view.values.dtype)
            reads = torch.einsum("rm,hdm->rhd", back, view.projection.weight.to(back.dtype))
            worth = torch.linalg.vecdot(view.values, reads[:, :, None])
            sources.append(to_float64(view.attention[rows, :, last] * worth))  # [row, head, key]
            for name in piece.names:
                shares.pop(name)
            mlps.append(shares.pop(MLP.format(cut.names.layer(piece.layer)), np.zeros(len(rows))))
    if len(sources) != len(views):
        raise unlike(parts.path, "its layers are not one attention each")
    bias, by_token = shares.pop(BIASES), np.stack(sources, 1)
    if others := [name for name in shares if "embedding" not in name]:
        raise unlike(others[0], "it is no layer with attention")
    values = logits.detach().to(torch.promote_types(logits.dtype, torch.float32))
    rows_of = zip(values, *answers, strict=True)
    difference = torch.stack([row[one].mean() - row[other].mean() for row, one, other in rows_of])
    return {
        "heads": by_token.sum(-1),
        "mlps": np.stack(mlps, 1),
        "embedding": np.sum(list(shares.values()), 0),
        "bias": bias,
        "difference": to_float64(difference),
        "sources": by_token,
    }


def _answers(logits: torch.Tensor, right: Sequence[Any]) -> dict[str, Float64]:
    """Loss, rank and probability of the best of the right answers; logits [row, vocabulary]."""
    best, ranks = np.zeros(len(logits)), np.ones(len(logits))
    for at, (row, ids) in enumerate(zip(logits, right, strict=True)):  # vocabularies are large
        log_p = to_float64(row.log_softmax(-1, dtype=torch.float64))
        best[at] = log_p[ids].max()
        ranks[at] += (log_p > best[at]).sum()
    return {"loss": -best, "rank": ranks, "probability": np.exp(best)}
