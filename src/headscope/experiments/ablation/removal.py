"""In which order do heads go, and what is left of the score on the way?

alone    by how little the loss rises without each head, the others being there
greedy   step by step: of the heads that looked least needed, those without which the loss rises
         least now that others are gone
given    by an importance that another run found, least important first
random   by chance, what the others are held against

Heads are removed as `disable` does it, so every point of a curve is the model that would be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import generator
from headscope.experiments.ablation.disable import disabled
from headscope.experiments.ablation.effects import losses_of
from headscope.experiments.ablation.replace import StandIn
from headscope.experiments.ablation.sweep import Answers, Way, answering, small_batches, sweep
from headscope.experiments.ablation.variants import Variant
from headscope.model.linears import linears
from headscope.tasks.predict import EncodedTask, outputs
from headscope.tasks.task_model import TaskModel

Head = tuple[int, int]
LOOKED_AT = 3  # ours: greedy looks at so many times the heads of a step
Told = Callable[[], object]


@dataclass(frozen=True)
class Pruner:
    """A model, the examples by which heads are chosen, and how it is run.

    way           how single heads are switched off, see `sweep.choose_way`
    kind          linear maps, "onednn" or "stock"
    batch_tokens  of one forward pass
    told          called after each look at the examples
    """

    model: TaskModel
    choosing: EncodedTask
    way: Way
    kind: str = "stock"
    batch_tokens: int = 2048
    told: Told = lambda: None

    @property
    def heads(self) -> list[Head]:
        """All heads, in order."""
        shape = self.model.model.shape
        return [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]

    def rises_without(self, heads: Sequence[Head], removed: Sequence[Head]) -> list[float]:
        """[head] by how much the mean loss rises without each of these, others being gone."""
        model, examples = self.model.model, self.choosing.examples
        variants: list[Variant] = [frozenset({head}) for head in heads]
        total = np.zeros(len(heads) + 1)
        with self._without(removed), self._answers() as answers:
            for places in small_batches(examples, variants, batch_tokens=self.batch_tokens):
                told = sweep(model, examples, places, variants, answers)
                given = told[..., 0] if self.model.task.is_regression else told
                labels = self.choosing.labels[places]
                total += [losses_of(self.model.task, labels, a).sum() for a in given]
                self.told()
        rises: list[float] = ((total[1:] - total[0]) / len(examples)).tolist()
        return rises

    def answers_without(
        self, scoring: EncodedTask, removed: Sequence[Head]
    ) -> npt.NDArray[np.float64]:
        """[example, class] or [example] what the model answers once these heads are gone."""
        with self._without(removed):
            return outputs(self.model, scoring, batch_tokens=self.batch_tokens)

    @contextmanager
    def _without(self, removed: Sequence[Head]) -> Iterator[None]:
        model = self.model.model
        shape, network = model.shape, model.network
        gone = disabled(network, frozenset(removed), layers=shape.layers, per_layer=shape.heads)
        with gone, linears(network, self.kind):  # packed weights are those of that moment
            yield

    @contextmanager
    def _answers(self) -> Iterator[Answers]:
        zero = StandIn("zero")
        network = self.model.model.network
        with answering(network, self.way, zero, batch_tokens=self.batch_tokens) as answers:
            yield answers


def alone(pruner: Pruner) -> dict[Head, float]:
    """Head → by how much the loss rises without it alone; those that rise least come first."""
    rises = dict(zip(pruner.heads, pruner.rises_without(pruner.heads, []), strict=True))
    return dict(sorted(rises.items(), key=lambda item: item[1]))


def greedy(pruner: Pruner, *, step: int, start: Mapping[Head, float]) -> list[Head]:
    """All heads; of each step's candidates those go whose loss rises least then.

    step   heads removed between two looks; candidates are LOOKED_AT times as many, those whose loss
           rose least when they were last looked at (lazy greedy: Minoux 1978)
    start  a first look, see `alone`
    """
    rises, order = dict(start), list[Head]()
    while rises:
        seen = sorted(rises, key=rises.__getitem__)[: LOOKED_AT * step]
        if len(rises) > step:
            rises |= zip(seen, pruner.rises_without(seen, order), strict=True)
        gone = sorted(seen, key=rises.__getitem__)[:step]
        order += gone
        rises = {head: rise for head, rise in rises.items() if head not in gone}
    return order


def given(importance: npt.NDArray[np.float64]) -> list[Head]:
    """All heads, least important first; importance [layer, head], NaN counts as 0."""
    flat = np.nan_to_num(importance).ravel()  # [unit]
    heads = importance.shape[1]
    return [divmod(int(unit), heads) for unit in np.argsort(flat, kind="stable")]


def random(heads: Sequence[Head], *, seed: int) -> list[Head]:
    """All heads in an order drawn by the seed."""
    drawn = generator(seed, "order of removal").permutation(len(heads))
    return [heads[int(at)] for at in drawn]


def counts(heads: int, step: int, *, also: int | None = None) -> list[int]:
    """How many heads are gone at each point of a curve: none, every step, one more, all."""
    return sorted({*range(0, heads, step), heads, *(() if also is None else (also,))})
