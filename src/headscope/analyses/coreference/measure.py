"""Which head finds the antecedent of a mention?

Of the words before it that are head words of mentions, the one that a mention's head word attends
to most is taken as its antecedent; the share of mentions for which that is a mention of the same
entity is the head's accuracy (Clark et al. 2019, §4.3). Beside it stand three rule systems, and the
accuracy of a head that was chosen on other documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.analyses.coreference.antecedents import (
    LEFT_OUT,
    SYSTEMS,
    MentionQuestion,
    mention_questions,
)
from headscope.analyses.language.held_out import add_by_half, best
from headscope.core.accumulators import Array, Float64, estimate, halves, ratio
from headscope.core.labelled import Variable, labelled
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.model.words import PIECES
from headscope.run.analysis import MEASURES, Analysis, Scope, check_option

MENTION_TYPES = ("all", "pronoun", "proper", "nominal")
MODES = ("accuracy", "accuracy_strict")
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Coreference(Analysis):
    """Accuracy of every head at finding an antecedent, by type of mention, beside rule systems.

    pieces   attention from a word of several tokens: their "mean", that of the "first", or "max"
    measure  "attention" or "weighted_norm"

    A mention is asked about if a mention of its entity comes before it in the same input; one comes
    before another if its head word does. Any antecedent is right, not only the nearest. `accuracy`
    looks at the head words of all mentions before it (singletons too), `accuracy_strict` at all
    words of the input but its own head word; special tokens are passed over in both. The first of
    equal weights counts, and where no weight is above 0 the answer is wrong. The paper leaves open
    what the candidates are, and cuts documents to 128 tokens; here every window is an input.

    A mention whose type is unknown counts in `all` only. Mentions left out, see
    `antecedents.mention_questions`: part of it is in another input (crosses_window), nothing of its
    entity comes before it in the input (no_antecedent), a longer mention has its head word
    (same_head_word), the tokenizer gave its head word no token (no_token).
    """

    name: ClassVar[str] = "coreference"
    needs: ClassVar[frozenset[str]] = frozenset({"attention", "words", "mentions"})
    summary: ClassVar[str] = "which head finds the antecedent of a mention, beside rule systems"
    source: ClassVar[str] = "Clark et al. 2019, §4.3"

    def __init__(self, scope: Scope, *, pieces: str = "mean", measure: str = "attention") -> None:
        super().__init__(scope)
        check_option("pieces", pieces, PIECES)
        check_option("measure", measure, MEASURES)
        self.measure, self.pieces = measure, pieces
        types = len(MENTION_TYPES)
        self.correct = self.sums(2, scope.layers, scope.heads, len(MODES), types)  # by half
        self.by_system = self.sums(len(SYSTEMS), types)
        self.count = self.sums(2, types)  # by half
        self.left_out = self.sums(len(LEFT_OUT), replicates=0)
        self._asked: _Asked | None = None

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Count, for each example, the mentions whose antecedent each head of the layer finds."""
        if layer.index == 0:
            self._begin(batch)
        asked = self._asked
        if asked is None:
            return
        maps = layer.measured(self.measure)
        rows = batch.words.maps(maps, pieces=self.pieces, of=asked.places)
        right = asked.right(rows.detach().cpu().numpy())  # [example, head, mode, row]
        values = right @ asked.member[:, None]  # [example, head, mode, type]
        add_by_half(self.correct, values, asked.half, batch.bootstrap, at=(layer.index,))

    def finish(self, batch: Batch) -> None:
        """Let go of what was looked up for the batch."""
        self._asked = None

    def _begin(self, batch: Batch) -> None:
        """Look up the questions of a batch, and let the rule systems answer them."""
        rows = [
            mention_questions(e.words or (), e.mentions, place)
            for e, place in zip(batch.examples, batch.words.place, strict=True)
        ]
        left_out = [[reasons[reason] for reason in LEFT_OUT] for _, reasons in rows]
        self.left_out.add(np.array(left_out), batch.bootstrap)
        if not any(found for found, _ in rows):
            self._asked = None
            return
        self._asked = asked = _Asked.of([found for found, _ in rows], batch, seed=self.scope.seed)
        self.by_system.add(asked.by_system @ asked.member, batch.bootstrap)
        add_by_half(self.count, asked.member.sum(1), asked.half, batch.bootstrap)

    # --- the result -------------------------------------------------------------------------

    def result(self) -> xr.Dataset:
        """Accuracies, baselines and the best heads; NaN for types that were never asked about."""
        count = self.count.sums.sum(1)  # [replicate + 1, type]
        correct = self.correct.sums.sum(1)  # [replicate + 1, layer, head, mode, type]
        accuracy = ratio(correct, count[:, None, None, None])
        baseline = ratio(self.by_system.sums, count[:, None])
        every = ("layer", "head", "mention_type")
        found = "share of mentions whose antecedent is found"
        left_out = self.left_out.sums[0].astype(np.int64)
        variables = {
            "accuracy": self._estimated(
                accuracy[..., 0, :], every, f"{found} among the head words of preceding mentions"
            ),
            "accuracy_strict": self._estimated(
                accuracy[..., 1, :], every, f"{found} among all words of the input"
            ),
            "baseline": self._estimated(
                baseline, ("system", "mention_type"), f"{found} by a rule system"
            ),
            **self._best(baseline),
            "count": self._plain(count[0].astype(np.int64), "mention_type", "mentions asked about"),
            "left_out": self._plain(left_out, "reason", "mentions left out"),
        }
        coords = {"mention_type": MENTION_TYPES, "system": tuple(SYSTEMS), "reason": LEFT_OUT}
        attributes = {"measure": self.measure, "pieces": self.pieces}
        return labelled(variables, coords=coords).assign_attrs(attributes)

    def _best(self, baseline: Float64) -> dict[str, Variable]:
        """The best heads by `accuracy`, on the same data and held out, beside the baselines."""
        correct = self.correct.sums[..., 0, :]  # [replicate + 1, half, layer, head, type]
        replicates, both, layers, heads, types = correct.shape
        by_unit = correct.reshape(replicates, both, layers * heads, types)  # [.., half, unit, type]
        found = best(by_unit, self.count.sums)
        layer, head = np.where(found.unit < 0, np.nan, np.divmod(found.unit, heads))
        by_type = ("mention_type",)
        return {
            "best_layer": self._plain(layer, *by_type, "layer of the best head"),
            "best_head": self._plain(head, *by_type, "the best head within its layer"),
            "best_accuracy": self._estimated(
                found.chosen, by_type, "accuracy of the best head, chosen on the same data"
            ),
            "held_out": self._estimated(
                found.held_out, by_type, "accuracy of heads chosen on the other half of the data"
            ),
            "advantage": self._estimated(
                found.held_out[:, None] - baseline,
                ("system", *by_type),
                "held-out accuracy of heads less that of a rule system",
            ),
        }

    def _estimated(self, draws: Float64, dims: tuple[str, ...], text: str) -> Variable:
        found = estimate(draws, documents=self.scope.documents)
        return Variable(found, dims, text, "1", self.source)

    def _plain(self, value: Array, dim: str, text: str) -> Variable:
        return Variable(value, (dim,), text, "1", self.source)


@dataclass(frozen=True)
class _Asked:
    """The questions of a batch, a row for each, in places (see `Words`).

    half        [example] 0 or 1
    places      [example, row] of the head words asked about; -1 behind the last of an example
    usable      [mode, example, row, place] whether an answer may be given there
    antecedent  [example, row, place] whether it would be right
    by_system   [example, system, row] 1 where a rule system is right
    member      [example, row, type] 1 where the question counts
    """

    half: Ints
    places: Ints
    usable: Bools
    antecedent: Bools
    by_system: Float64
    member: Float64

    @classmethod
    def of(cls, rows: Sequence[Sequence[MentionQuestion]], batch: Batch, *, seed: int) -> _Asked:
        """The questions of each example."""
        shape = (len(rows), max(map(len, rows)))
        asked = cls(
            half=halves([e.document for e in batch.examples], seed=seed),
            places=np.full(shape, -1),
            usable=np.zeros((len(MODES), *shape, batch.words.most), bool),
            antecedent=np.zeros((*shape, batch.words.most), bool),
            by_system=np.zeros((shape[0], len(SYSTEMS), shape[1])),
            member=np.zeros((*shape, len(MENTION_TYPES))),
        )
        asked.usable[1] = batch.words.real[:, None]
        for example, found in enumerate(rows):
            for row, question in enumerate(found):
                asked._look_up(example, row, question, batch.words.place[example])
        return asked

    def _look_up(self, example: int, row: int, question: MentionQuestion, place: Ints) -> None:
        mention, at = question.asked.mention, (example, row)
        self.places[at] = place[mention.head]
        self.usable[0][at][place[[c.mention.head for c in question.candidates]]] = True
        self.usable[1][at][place[mention.head]] = False
        self.antecedent[at][place[list(question.antecedents)]] = True
        self.by_system[example, :, row] = [
            answer(question) in question.antecedents for answer in SYSTEMS.values()
        ]
        self.member[at] = [kind in ("all", mention.kind) for kind in MENTION_TYPES]

    def right(self, weights: Array) -> Float64:
        """[example, head, mode, row] 1 where the largest weight goes to an antecedent.

        weights  [example, head, row, place]; the first of equals counts, and 0 is no answer
        """
        found = []
        for usable in self.usable:
            left = np.where(usable[:, None], weights, 0)
            answer = left.argmax(-1)[..., None]  # [example, head, row, 1]
            positive = np.take_along_axis(left, answer, -1) > 0
            found.append(positive & np.take_along_axis(self.antecedent[:, None], answer, -1))
        return np.stack(found, 2)[..., 0].astype(np.float64)  # [example, head, mode, row]
