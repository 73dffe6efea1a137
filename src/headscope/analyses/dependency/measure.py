"""Which head finds the syntactic head of a word?

For every word the other word that it attends to most (dependent to head), or the one that attends
to it most (head to dependent), is taken as its syntactic head; the share of words for which that is
right is the head's accuracy on their relation (Clark et al. 2019, §4.2). Beside it stand the best
fixed offset, and the accuracy of a head that was chosen on other documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.analyses.dependency.measure_trees import OFFSETS, POSSESSIVE, SyntacticHeads
from headscope.analyses.language.held_out import HeldOutChoice, add_by_half, best
from headscope.core.accumulators import (
    Estimate,
    Float64,
    estimate,
    estimate_by_spread,
    halves,
    ratio,
)
from headscope.core.labelled import Variable, labelled
from headscope.corpus.contents import ROOT
from headscope.errors import InputError
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.model.words import PIECES, largest
from headscope.run.analysis import MEASURES, Analysis, Scope, check_option

DIRECTIONS = ("dependent_to_head", "head_to_dependent")
ALL, CLEAN = "all", "all_but_root_and_punctuation"
PUNCTUATION = frozenset({"punct", "P"})  # UD and Stanford; the CoNLL-X treebanks' P
LEFT_OUT = ("head_in_another_input", "no_token")
REPLICATE_BYTES = 64 << 20  # ours: with many heads and relations, fewer replicates are kept
PERCENTILES_FROM = 100  # ours: below, an interval is 1.96 standard deviations of the replicates


class Dependency(Analysis):
    """Accuracy of every head, direction and relation, beside fixed offsets.

    relations   comma-separated labels to keep; "" keeps all. `all` and
                `all_but_root_and_punctuation` are over all labels, whatever is kept
    subtypes    "keep": nsubj:pass is a relation of its own; "fold": it counts as nsubj
    possessive  with `'s` or `s'` behind a word, the answer given for the clitic is scored instead
                of the word's own: "stanford" for the relation poss, as the authors' code does;
                "universal" for nmod:poss too; "off" never
    pieces      attention from a word of several tokens: their "mean", that of the "first", or "max"
    measure     "attention" or "weighted_norm"

    As in the authors' code: the root can never be found, yet counts as a question in `all` and
    `root`; punctuation counts in `all`; offsets are clamped to the sentence, so that -1 on the
    first word answers "root". Unlike it: offsets reach from -5 to 5, not -3 to 2; a head without
    any positive weight gives no answer. A word whose head is in another window is not asked for.
    """

    name: ClassVar[str] = "dependency"
    needs: ClassVar[frozenset[str]] = frozenset({"attention", "words", "trees"})
    summary: ClassVar[str] = "which head finds the syntactic head, for every relation"
    source: ClassVar[str] = "Clark et al. 2019, §4.2"

    def __init__(
        self,
        scope: Scope,
        *,
        relations: str = "",
        subtypes: str = "keep",
        possessive: str = "stanford",
        pieces: str = "mean",
        measure: str = "attention",
    ) -> None:
        super().__init__(scope)
        check_option("subtypes", subtypes, ("keep", "fold"))
        check_option("possessive", possessive, POSSESSIVE)
        check_option("pieces", pieces, PIECES)
        check_option("measure", measure, MEASURES)
        self.options = {
            "measure": measure, "pieces": pieces, "subtypes": subtypes, "possessive": possessive,
        }  # fmt: skip
        self.columns, self.member = _columns(scope.relations, relations, fold=subtypes == "fold")
        size = len(self.columns)
        cells = 2 * scope.layers * scope.heads * len(DIRECTIONS) * size
        kept = max(2, REPLICATE_BYTES // (8 * cells))
        self.correct = self.sums(
            2, scope.layers, scope.heads, len(DIRECTIONS), size, replicates=kept
        )
        self.by_offset = self.sums(2, len(OFFSETS), size, replicates=kept)
        self.asked = self.sums(2, size, replicates=kept)
        self.left_out = self.sums(len(LEFT_OUT), replicates=0)
        self._seen: _BatchAnswers | None = None

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Count, for each example, the words whose head each head of the layer finds."""
        if layer.index == 0:
            self._begin(batch)
        seen = self._seen
        if seen is None:
            return
        maps = layer.word_maps(
            batch, measure=self.options["measure"], pieces=self.options["pieces"]
        )
        answers = np.stack(largest(maps, batch.words), 2)  # [example, head, direction, place]
        answers = np.take_along_axis(answers, seen.heads.judge[:, None, None], 3)
        right = answers == seen.heads.head[:, None, None]
        by_column = right.astype(np.float32) @ seen.member[:, None]  # [example, head, direction, …]
        add_by_half(self.correct, by_column, seen.half, batch.bootstrap, at=(layer.index,))

    def _begin(self, batch: Batch) -> None:
        """Look up what is right, once per batch, and count the questions."""
        heads = SyntacticHeads.of(
            batch.examples, batch.words, self.scope.relations,
            possessive=self.options["possessive"],
        )  # fmt: skip
        if not (heads.asked.any() or heads.left_out.any()):
            self._seen = None
            return
        half = halves([e.document for e in batch.examples], seed=self.scope.seed)
        member = np.where(heads.asked[..., None], self.member[heads.label], 0)
        member[heads.root, self.columns.index(CLEAN)] = 0
        self._seen = seen = _BatchAnswers(heads, half, member.astype(np.float32))
        add_by_half(self.asked, member.sum(1), half, batch.bootstrap)
        offsets = np.swapaxes(heads.by_offset, 1, 2)  # [example, offset, place]
        found = offsets.astype(np.float32) @ seen.member  # [example, offset, column]
        add_by_half(self.by_offset, found, half, batch.bootstrap)
        self.left_out.add(heads.left_out, batch.bootstrap)

    # --- the result -------------------------------------------------------------------------

    def result(self) -> xr.Dataset:
        """Accuracies, baselines and the best heads; NaN for what was never asked."""
        correct, offsets, asked = (
            a.sums for a in (self.correct, self.by_offset, self.asked)
        )  # [replicate + 1, half, …, column]
        heads = best(correct.reshape(*correct.shape[:2], -1, correct.shape[-1]), asked)
        baseline = best(offsets, asked)
        both = asked.sum(1)  # [replicate + 1, column]
        accuracy = self._estimate(ratio(correct.sum(1), both[:, None, None, None]))
        by_offset = self._estimate(ratio(offsets.sum(1), both[:, None]))
        every = ("layer", "head", "direction", "relation")
        text = "share of words whose syntactic head is found"
        variables = {
            "accuracy": Variable(accuracy, every, text, "1", self.source),
            "offset_accuracy": Variable(
                by_offset, ("offset", "relation"), f"{text} by a fixed offset", "1", self.source
            ),
            "count": Variable(
                both[0].astype(np.int64), ("relation",), "words asked for", "1", self.source
            ),
            "left_out": Variable(
                self.left_out.sums[0].astype(np.int64), ("reason",), "words left out", "1", "ours"
            ),
            **self._best(heads, baseline, correct.shape[2:5]),
        }
        coords = {
            "direction": DIRECTIONS, "relation": self.columns, "offset": OFFSETS,
            "reason": LEFT_OUT,
        }  # fmt: skip
        return labelled(variables, coords=coords).assign_attrs(self.options)

    def _best(
        self, heads: HeldOutChoice, baseline: HeldOutChoice, shape: tuple[int, ...]
    ) -> dict[str, Variable]:
        places = np.array(np.unravel_index(np.maximum(heads.unit, 0), shape), np.float64)
        layer, head, direction = np.where(heads.unit >= 0, places, np.nan)
        offset = np.array(OFFSETS, np.float64)[np.maximum(baseline.unit, 0)]
        choices = {
            "best_layer": (layer, "layer of the best head"),
            "best_head": (head, "the best head within its layer"),
            "best_direction": (direction, "direction of the best head, an index of direction"),
            "best_offset": (np.where(baseline.unit >= 0, offset, np.nan), "the best fixed offset"),
        }
        estimates = {
            "best_accuracy": (heads.chosen, "accuracy of the best head, chosen on the same data"),
            "baseline": (baseline.chosen, "accuracy of the best offset, chosen on the same data"),
            "held_out": (heads.held_out, "accuracy of heads chosen on the other half of the data"),
            "advantage": (
                heads.held_out - baseline.chosen,
                "held-out accuracy of heads less that of the best offset",
            ),
        }
        return {
            name: Variable(value, ("relation",), text, "1", self.source)
            for name, (value, text) in choices.items()
        } | {
            name: Variable(self._estimate(draws), ("relation",), text, "1", self.source)
            for name, (draws, text) in estimates.items()
        }

    def _estimate(self, draws: Float64) -> Estimate:
        few = len(draws) - 1 < min(PERCENTILES_FROM, self.scope.replicates)
        return (estimate_by_spread if few else estimate)(draws, documents=self.scope.documents)


@dataclass(frozen=True)
class _BatchAnswers:
    """What is known of the batch that is being looked at.

    half    [example] 0 or 1
    member  [example, place, column] float32 1 where the word's answer counts for the column
    """

    heads: SyntacticHeads
    half: npt.NDArray[np.int64]
    member: npt.NDArray[np.float32]


def _columns(
    labels: tuple[str, ...], wanted: str, *, fold: bool
) -> tuple[list[str], npt.NDArray[np.float64]]:
    """The columns of the result, and member [label, column]: 1 where a label counts for it."""
    names = [label.partition(":")[0] if fold else label for label in labels]
    kept = list(dict.fromkeys(names))
    asked = [name for name in map(str.strip, str(wanted).split(",")) if name]
    if labels and (unknown := [name for name in asked if name not in kept]):
        raise InputError(f"no relation {unknown[0]!r} in this corpus; there are {', '.join(kept)}")
    kept = [name for name in kept if not asked or name in asked]
    member = np.array([[name == column for column in kept] for name in names])
    plain = [name != ROOT and name.partition(":")[0] not in PUNCTUATION for name in names]
    whole = np.stack([np.ones(len(names)), np.array(plain)], -1)  # [label, 2]
    return [ALL, CLEAN, *kept], np.concatenate(
        [whole, member.reshape(len(names), len(kept))], -1, dtype=np.float64
    )
