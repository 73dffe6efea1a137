"""How much of a logit difference each head writes directly, by source token.

    dataset = hs.prompts.direct_logits("gpt2", "ioi")
    dataset["direct"]

A head adds Σ_j α_ij f_h(x_j) to the residual stream of the last token, and the final norm, at the
scale that it has there, and the unembedding of the right answer less that of the wrong one turn it
into logits (Elhage et al. 2021; Wang et al. 2023). Embeddings, MLPs and biases add the rest: the
parts add up to the logit difference, and are refused where they do not. What a head writes for
other layers to read is not in it: that is what patching shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn

from headscope.core.accumulators import REPLICATES, Float64
from headscope.core.results import Variable, labelled
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.errors import ModelError
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
    FrozenNorm,
    Readout,
    asked_places,
    asking_last,
    decoder_of,
)
from headscope.model.batch import Batch, to_float64
from headscope.model.families.sites import find_sites
from headscope.model.instrument import Instrument
from headscope.model.language_model import LanguageModel, ModelLike
from headscope.model.layer import LayerView
from headscope.model.linears import rounding
from headscope.model.model import evaluating, forward
from headscope.model.request import BATCH_TOKENS
from headscope.tasks.task_request import language_model

SOURCE = "Elhage et al. 2021; Wang et al. 2023"
TOLERANCE = 1e-3  # of the largest part, in float32: what parts may miss of the whole by rounding


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
    network = decoder_of(model)
    blocks = list(dict.fromkeys(s.block for s in find_sites(network) if s.block is not None))
    parts: list[tuple[int, dict[str, Any]]] = []
    objective, changed = asking_last(examples, prompts.right), False
    with evaluating(network):
        for places in batches(examples, budget=batch_tokens):
            batch = model.model.batch([examples[at] for at in places])
            taken = _Taken(asked_places(batch))
            with (
                objective.asking(network, places),
                Readout(network, blocks) as readout,
                taken.watching(blocks),
                Instrument(network, observers=[taken.views.append]),
            ):
                answer = forward(network, *batch.inputs, keep=False)
            right, wrong = ([some[at] for at in places] for some in (prompts.right, prompts.wrong))
            with torch.inference_mode():
                numbers = _parts(taken, readout, batch, right, wrong)
                numbers |= _answers(answer.logits, right)
                changed |= not torch.equal(answer.logits, readout.logits)
            parts += [
                (at, {name: value[row] for name, value in numbers.items()})
                for row, at in enumerate(places)
            ]
    rows = [row for _, row in sorted(parts, key=lambda one: one[0])]
    sources = [row.pop("sources")[..., : len(one)] for row, one in zip(rows, examples, strict=True)]
    result = Written(
        **{name: np.stack([r[name] for r in rows]) for name in rows[0]},
        sources=sources,
        after="before the network's own softcap or scale" if changed else "",
    )
    largest = max(np.abs(result.heads).sum((1, 2)).max(), np.abs(result.difference).max())
    if not np.abs(result.rest).max() <= max(TOLERANCE, rounding(network.dtype)) * max(
        largest, 1e-6
    ):
        raise ModelError(
            f"what the parts of {type(network).__name__} write differs from the logit difference "
            "by "
            f"{np.abs(result.rest).max():.1e}; wanted their sum: please report this model"
        )
    return result


class _Taken:
    """What a pass leaves at the asked places: each layer's input and output, and what it added."""

    def __init__(self, places: tuple[torch.Tensor, torch.Tensor]) -> None:
        self.places = places
        self.views: list[LayerView] = []
        self.before: list[torch.Tensor] = []  # [row, model] by layer
        self.after: list[torch.Tensor] = []
        self.inside: list[list[tuple[nn.Module, torch.Tensor, torch.Tensor]]] = []

    def watching(self, blocks: Sequence[nn.Module]) -> ExitStack:
        """A context in which the layers are taken down."""
        stack = ExitStack()
        for block in blocks:
            stack.callback(block.register_forward_pre_hook(self._begin, with_kwargs=True).remove)
            stack.callback(block.register_forward_hook(self._end).remove)
            for module in block.modules():
                if module is not block:
                    stack.callback(module.register_forward_hook(self._part).remove)
        return stack

    def _begin(self, _block: Any, args: Any, kwargs: Any) -> None:
        hidden = args[0] if args else kwargs["hidden_states"]
        self.size = hidden.shape
        self.before.append(hidden[self.places])
        self.inside.append([])

    def _end(self, _block: Any, _args: Any, output: Any) -> None:
        self.after.append((output[0] if isinstance(output, tuple) else output)[self.places])

    def _part(self, module: nn.Module, args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        tensors = [one for one in (args[0] if args else None, first) if torch.is_tensor(one)]
        if tensors and tensors[-1].numel() == self.size.numel():
            rows = [
                t.reshape(self.size)[self.places] if t.numel() == self.size.numel() else t[:0]
                for t in (tensors[0], tensors[-1])
            ]
            self.inside[-1].append((module, rows[0], rows[1]))


def _parts(
    taken: _Taken, readout: Readout, batch: Batch, right: Sequence[Any], wrong: Sequence[Any]
) -> dict[str, Float64]:
    ahead, constant = readout.directions(taken.after[-1], taken.places, right, wrong)
    rows, last = taken.places
    heads, mlps, sources = [], [], []
    for at, view in enumerate(taken.views):
        if len(taken.before) != len(taken.views) or view.output is None or view.values is None:
            raise _unlike(view, "its layers are not one attention each")
        if at and not torch.equal(taken.before[at], taken.after[at - 1]):
            raise _unlike(view, "its layer is not given what the layer before gave")
        own = view.output[taken.places]
        norm, added = _added(taken, at, own)
        direction = ahead if norm is None else norm.back(ahead)  # [row, model]
        projection = view.projection
        wide = direction.dtype
        reads = torch.einsum("rm,hdm->rhd", direction, projection.weight.to(wide))
        worth = torch.linalg.vecdot(view.values.to(wide), reads[:, :, None])  # [row, head, key]
        sources.append(view.attention[rows, :, last].to(wide) * worth)
        heads.append(sources[-1].sum(-1))  # [row, head]
        if projection.bias is not None:
            constant = constant + direction @ projection.bias.to(wide)
        if norm is not None:
            constant = constant + ahead @ norm.shift
        mlps.append(torch.linalg.vecdot(added.to(wide), ahead))
    logits = readout.logits.to(ahead.dtype)
    sides = zip(logits, right, wrong, strict=True)
    difference = torch.stack([row[one].mean() - row[other].mean() for row, one, other in sides])
    embedding = torch.linalg.vecdot(taken.before[0].to(ahead.dtype), ahead)
    return {
        "heads": to_float64(torch.stack(heads, 1)),
        "mlps": to_float64(torch.stack(mlps, 1)),
        "embedding": to_float64(embedding),
        "bias": to_float64(constant),
        "difference": to_float64(difference),
        "sources": to_float64(torch.stack(sources, 1)),
    }


def _added(taken: _Taken, at: int, own: torch.Tensor) -> tuple[FrozenNorm | None, torch.Tensor]:
    """How attention comes into the stream, through a norm or as it is; and what else is added.

    own      [row, model] what the output projection gave
    returns  the norm or None, and [row, model] what another module of the layer gave: the MLP
    """
    whole = taken.after[at] - taken.before[at]
    inside = taken.inside[at]
    near = partial(_near, size=float(whole.abs().max()))
    ways: list[tuple[FrozenNorm | None, torch.Tensor]] = [(None, own)]
    for module, inputs, gave in inside:
        if inputs.shape == own.shape and near(inputs, own) and not near(gave, own):
            norm = None if any(module.children()) else FrozenNorm.of(module, inputs, gave)
            ways += [] if norm is None else [(norm, gave)]
    for norm, attention in ways:
        for _, _, gave in reversed(inside):
            if near(whole - attention, gave):
                return norm, gave
        if near(whole, attention):
            return norm, torch.zeros_like(attention)
    raise _unlike(taken.views[at], "its layer adds more than attention and one other module give")


def _near(one: torch.Tensor, other: torch.Tensor, *, size: float) -> bool:
    return bool((one - other).abs().max() <= rounding(one.dtype) * 0.1 * size)


def _unlike(view: LayerView, reason: str) -> ModelError:
    return ModelError(
        f"{view.site.path}: {reason}: the writes of heads into the logits are unknown for this "
        "family; wanted a decoder whose layers add attention and an MLP to a residual stream"
    )


def _answers(logits: torch.Tensor, right: Sequence[Any]) -> dict[str, Float64]:
    """Loss, rank and probability of the best of the right answers; logits [row, vocabulary]."""
    log_p = to_float64(logits.log_softmax(-1, dtype=torch.float64))
    best = np.array([row[ids].max() for row, ids in zip(log_p, right, strict=True)])
    ranks = 1.0 + (log_p > best[:, None]).sum(1)
    return {"loss": -best, "rank": ranks, "probability": np.exp(best)}
