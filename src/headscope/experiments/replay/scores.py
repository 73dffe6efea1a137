"""What of an output is compared: the loss of a language model, answers of a classifier, or vectors.

A score gives one number per input and measure, and may keep of the whole model what tells how far
apart two inputs are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch.nn.functional import normalize

from headscope.core.accumulators import Float64, Ints, generator
from headscope.corpus.document import Example
from headscope.errors import HeadscopeError
from headscope.model import language_model as objectives
from headscope.model.batch import Batch, to_float64
from headscope.model.language_model import TokenLoss, wide
from headscope.model.model import Model, run_network
from headscope.run.shard_files import State

CAUSAL, MASKED, ANSWERS, VECTORS = "causal", "masked", "answers", "vectors"
TOKENS, POOLED = "tokens", "pooled"  # measures of vectors
AT_PLACES = 1 / 8  # ours: the share of predicted tokens at which two predictions are compared


class OutputScore(Protocol):
    """A way to compare outputs."""

    @property
    def kind(self) -> str:
        """CAUSAL, MASKED, ANSWERS or VECTORS."""

    @property
    def examples(self) -> Sequence[Example]:
        """The inputs, as the model is shown them."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the numbers of an input."""

    @property
    def digest(self) -> str:
        """Hex sha256 of what it asks beside the inputs; "" for nothing."""

    def output(self, model: Model, batch: Batch, places: Sequence[int]) -> torch.Tensor:
        """What the network gives for the inputs at these places."""

    def numbers(self, output: torch.Tensor, whole: torch.Tensor, batch: Batch) -> Float64:
        """[input, measure] of an output, beside that of the whole model."""

    def kept(self, whole: torch.Tensor, batch: Batch) -> State:
        """[input, …] of the whole model, from which inputs are compared; {} for none."""

    def weights(self) -> Float64:
        """[input] how much each counts in a mean: its predicted tokens, or 1."""


@dataclass(frozen=True)
class LossScore:
    """The loss of a language model: nats per predicted token, mean over those of an input."""

    kind: str
    examples: Sequence[Example]
    objective: TokenLoss
    measures: tuple[str, ...] = ("loss",)

    @classmethod
    def of(cls, model: Model, kind: str, examples: Sequence[Example], *, seed: int) -> LossScore:
        """The loss of these inputs; CorpusError where nothing can be predicted in them."""
        asks = (
            objectives.masked(model, examples, seed=seed)
            if kind == MASKED
            else objectives.causal(examples)
        )
        return cls(kind, asks.examples, asks.objective)

    @property
    def digest(self) -> str:
        """Hex sha256 of the tokens to predict."""
        return self.objective.digest

    def output(self, model: Model, batch: Batch, places: Sequence[int]) -> torch.Tensor:
        """[input] losses; HeadscopeError for one that is not finite."""
        with self.objective.asking(model.network, places):
            answer: Any = run_network(model.network, *batch.inputs, keep=False)
        losses = self.objective.losses(wide(answer.logits), places)
        bad = np.flatnonzero(~np.isfinite(to_float64(losses)))
        if len(bad):
            raise HeadscopeError(
                f"the loss of {self.examples[places[bad[0]]].id!r} is not finite; wanted a number: "
                "the dtype may be too narrow: try --dtype float32"
            )
        return losses

    def numbers(self, output: torch.Tensor, whole: torch.Tensor, batch: Batch) -> Float64:
        """[input, measure] the losses."""
        return to_float64(output)[:, None]

    def kept(self, whole: torch.Tensor, batch: Batch) -> State:
        """Nothing."""
        return {}

    def weights(self) -> Float64:
        """[input] predicted tokens."""
        return np.array([len(places) for places in self.objective.asked], np.float64)


@dataclass(frozen=True)
class AnswerScore:
    """Divergence of a classifier's answers from those of the whole model: KL(whole ‖ replaced), in
    nats, of the probabilities of its classes.
    """

    examples: Sequence[Example]
    kind: str = ANSWERS
    measures: tuple[str, ...] = (ANSWERS,)
    digest: str = ""

    def output(self, model: Model, batch: Batch, places: Sequence[int]) -> torch.Tensor:
        """[input, class] log probabilities."""
        answer: Any = run_network(model.network, *batch.inputs, keep=False)
        return torch.log_softmax(answer.logits.double(), -1)

    def numbers(self, output: torch.Tensor, whole: torch.Tensor, batch: Batch) -> Float64:
        """[input, measure] the divergence."""
        return to_float64(self.difference(output, whole, batch))[:, None]

    def difference(self, output: torch.Tensor, whole: torch.Tensor, batch: Batch) -> torch.Tensor:
        """[input] the divergence."""
        return _divergence(output, whole)

    def kept(self, whole: torch.Tensor, batch: Batch) -> State:
        """[input, class] log probabilities."""
        return {ANSWERS: to_float64(whole)}

    def weights(self) -> Float64:
        """[input] 1."""
        return np.ones(len(self.examples))


@dataclass(frozen=True)
class VectorScore:
    """1 − cosine of the output vectors with those of the whole model.

    tokens  mean over the tokens of an input; pooled: of the mean vector of its tokens
    """

    examples: Sequence[Example]
    kind: str = VECTORS
    measures: tuple[str, ...] = (TOKENS, POOLED)
    digest: str = ""

    def output(self, model: Model, batch: Batch, places: Sequence[int]) -> torch.Tensor:
        """[input, token, dim] vectors."""
        answer: Any = run_network(model.network, *batch.inputs, keep=False)
        vectors: torch.Tensor = answer[0]
        return vectors.double()

    def numbers(self, output: torch.Tensor, whole: torch.Tensor, batch: Batch) -> Float64:
        """[input, measure] 1 − cosine."""
        pooled = 1 - (_pooled(output, batch) * _pooled(whole, batch)).sum(-1)
        return to_float64(torch.stack([self.difference(output, whole, batch), pooled], -1))

    def difference(self, output: torch.Tensor, whole: torch.Tensor, batch: Batch) -> torch.Tensor:
        """[input] 1 − cosine of its tokens, their mean."""
        of_tokens = 1 - (normalize(output, dim=-1) * normalize(whole, dim=-1)).sum(-1)
        return _mean(of_tokens[..., None], batch)[:, 0]

    def kept(self, whole: torch.Tensor, batch: Batch) -> State:
        """[input, dim] the mean of the tokens' directions, and the direction of their mean."""
        directions = _mean(normalize(whole, dim=-1), batch)
        return {TOKENS: to_float64(directions), POOLED: to_float64(_pooled(whole, batch))}

    def weights(self) -> Float64:
        """[input] 1."""
        return np.ones(len(self.examples))


@dataclass(frozen=True)
class PredictionDivergence:
    """Divergence of what a language model predicts from what the whole model predicts: KL(whole ‖
    replaced), in nats, mean over the tokens that are asked.
    """

    examples: Sequence[Example]
    objective: TokenLoss

    def output(self, model: Model, batch: Batch, places: Sequence[int]) -> torch.Tensor:
        """[asked token of any input, token] log probabilities."""
        with self.objective.asking(model.network, places):
            answer: Any = run_network(model.network, *batch.inputs, keep=False)
        return torch.log_softmax(wide(answer.logits), -1)

    def difference(self, output: torch.Tensor, whole: torch.Tensor, batch: Batch) -> torch.Tensor:
        """[asked token of any input] the divergence."""
        return _divergence(output, whole)


Difference = PredictionDivergence | AnswerScore | VectorScore


def difference_of(model: Model, kind: str, examples: Sequence[Example], *, seed: int) -> Difference:
    """What says how far outputs are from the whole model's; of a decoder some predictions."""
    if kind in (ANSWERS, VECTORS):
        return AnswerScore(examples) if kind == ANSWERS else VectorScore(examples)
    if kind == MASKED:
        asks = objectives.masked(model, examples, seed=seed)
        return PredictionDivergence(asks.examples, asks.objective)
    asks = objectives.causal(examples)
    few = [
        _some_of(places, e, seed)
        for places, e in zip(asks.objective.asked, asks.examples, strict=True)
    ]
    # what is right is not asked: predictions are compared
    return PredictionDivergence(asks.examples, replace(asks.objective, asked=few, right=few))


def finite(difference: torch.Tensor) -> torch.Tensor:
    """The same; HeadscopeError where it is not finite."""
    if not bool(torch.isfinite(difference).all()):
        raise HeadscopeError(
            "the output with heads replaced is not finite; wanted numbers: the dtype may be too "
            "narrow: try --dtype float32"
        )
    return difference


def _some_of(places: Ints, example: Example, seed: int) -> Ints:
    """A part of the places at which a token is predicted, in order."""
    random = generator(seed, "fitted places", example.document, example.id)
    return np.sort(random.choice(places, math.ceil(len(places) * AT_PLACES), replace=False))


def _divergence(output: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    share = whole.exp()
    return torch.where(share > 0, share * (whole - output), 0.0).sum(-1)


def _mean(values: torch.Tensor, batch: Batch) -> torch.Tensor:
    """[input, dim] the mean over the tokens of each input."""
    mask = batch.mask[..., None].to(values)
    return (values * mask).sum(1) / mask.sum(1)


def _pooled(vectors: torch.Tensor, batch: Batch) -> torch.Tensor:
    return normalize(_mean(vectors, batch), dim=-1)


def apart(measure: str, kept: Float64, units: Sequence[str]) -> Float64:
    """[input] how far an input is from those of other documents, mean over these.

    kept  [input, dim] directions, or means of such: 1 − cosine; of answers [input, class] log
          probabilities: the divergence of the other's from its own
    """
    names = np.array(units)
    other = names[:, None] != names[None]
    if measure == ANSWERS:
        share = np.exp(kept)
        between = (share * kept).sum(1)[:, None] - share @ kept.T  # [input, other]
    else:
        between = 1 - kept @ kept.T
    distance = np.where(other, between, 0.0)
    return np.asarray(distance.sum(1) / np.maximum(other.sum(1), 1))
