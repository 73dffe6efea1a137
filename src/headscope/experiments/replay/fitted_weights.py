"""Fit the weights of rules to the output: with rules in the place of heads, the model is to say
what it says as a whole.

The weights that an atlas finds predict the attention of one head at a time. Here the heads of a set
are replaced together, and gradients through the model move the weights of their rules, and the
factors of their key tokens. Which rules a head has, and its rest, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from headscope.analyses.explained.prediction import HeadRules
from headscope.core.accumulators import generator
from headscope.core.progress import Advance
from headscope.corpus.packing import batches
from headscope.experiments.importance.gradients import frozen
from headscope.experiments.probes.resumable_training import LearningSchedule, train
from headscope.experiments.replay.replacements import RowsOfInput, StandIns, replacing
from headscope.experiments.replay.scores import Difference, finite
from headscope.model.variants import Head

STEPS = 72  # ours
RATE = 0.05  # ours: of Adam
STEP_TOKENS = 1024  # ours: of a step, and of an input, its first ones
KEPT_BYTES = 2**31  # ours: of the rows of rules, from one look at an input to the next
LEAST = 1e-3  # a weight, or a factor, to begin with


class RuleWeights(nn.Module):
    """The weights of the rules of every head, and the factors of its key tokens, which are learned.

    start  the rules, and the numbers to begin with
    """

    def __init__(self, start: HeadRules) -> None:
        super().__init__()
        self.start = start
        self.there = torch.from_numpy(start.rule >= 0)
        weight = torch.from_numpy(np.maximum(start.weight, LEAST))
        self.weight = nn.Parameter(torch.log(torch.expm1(weight)))  # softplus turns it back
        self.factor = nn.Parameter(torch.from_numpy(np.log(np.maximum(start.key_factor, LEAST))))

    def rules(self) -> HeadRules:
        """The rules with the numbers of now, as tensors."""
        weight = nn.functional.softplus(self.weight) * self.there
        return self._with(weight, self.factor.exp())

    def fitted(self) -> HeadRules:
        """The same as arrays."""
        made = cast(Any, self.rules())
        return self._with(made.weight.detach().numpy(), made.key_factor.detach().numpy())

    def _with(self, weight: Any, factor: Any) -> HeadRules:
        return replace(self.start, weight=weight, key_factor=factor)


@dataclass
class FittedWeights:
    """The fit of the rules that stand in under one name.

    sets  the heads that are replaced together; each step takes one of them
    """

    stand_ins: StandIns
    name: str
    difference: Difference
    sets: Sequence[frozenset[Head]]
    seed: int
    made: dict[int, list[RowsOfInput]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.weights = RuleWeights(self.stand_ins.heads[self.name])
        self.steps = list(batches(self.difference.examples, budget=STEP_TOKENS))
        self.epochs = -(-STEPS // len(self.steps))  # looks at every input
        self.taken = 0

    @property
    def count(self) -> int:
        """How many steps it takes."""
        return self.epochs * len(self.steps)

    def fit(self, advance: Advance) -> HeadRules:
        """The rules with fitted weights."""
        schedule = LearningSchedule(self.epochs, 1, RATE, seed=self.seed)
        network = self.stand_ins.model.network
        with frozen(network), replacing(network, gradients=True) as self.change:
            sizes = len(self.steps), 0
            train(self.weights, (self._loss, self._loss), sizes, schedule, progress=advance)
        return self.weights.fitted()

    def _loss(self, steps: Sequence[int]) -> torch.Tensor:
        (step,) = steps
        places, model = self.steps[step], self.stand_ins.model
        batch = model.batch([self.difference.examples[at] for at in places])
        heads = {**self.stand_ins.heads, self.name: self.weights.rules()}
        own = replace(self.stand_ins, heads=heads).of(batch)
        own.inputs = self.made.get(step, [])
        drawn = generator(self.seed, "fitted set", str(self.taken)).integers(len(self.sets))
        self.taken += 1
        with torch.no_grad():
            self.change.use(frozenset(), None)
            whole = self.difference.output(model, batch, places)
        self.change.use(self.sets[int(drawn)], own.rows(self.name))
        output = self.difference.output(model, batch, places)
        self._keep(step, own.inputs)
        return finite(self.difference.difference(output, whole, batch)).mean()

    def _keep(self, step: int, inputs: list[RowsOfInput]) -> None:
        kept = {**self.made, step: inputs}
        every = (rows for some in kept.values() for one in some for rows in one.made.values())
        size = sum(rows.nbytes for rows in every)
        if size <= KEPT_BYTES:
            self.made = kept
