"""Which head finds the syntactic head of a word?

For every word the other word that it attends to most (dependent to head), or the one that attends
to it most (head to dependent), is taken as its syntactic head; the share of words for which that is
right is the head's accuracy on their relation (Clark et al. 2019, §4.2). Beside it stand the best
fixed offset, and the accuracy of a head that was chosen on other documents.

And does the head find it because the two words stand in the relation? The words beside are tested
in the same way: how often do they find the syntactic head of their neighbour? So are the words of
all other relations: how often do they find their own?"""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.analyses.dependency import QUESTION
from headscope.analyses.dependency.claims import GRID
from headscope.analyses.language.held_out import add_by_half, best, counted
from headscope.analyses.language.specific import against_rivals, weight_above, words_beside
from headscope.analyses.language.weighted_pairs import WeightedPairs
from headscope.core.accumulators import Array, Bools, Float64, Ints, halves, ratio
from headscope.core.results import labelled
from headscope.corpus.contents import ROOT, has_tree, label, refuse_unknown, relation_names
from headscope.corpus.document import Example
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope

DIRECTIONS = ("dependent_to_head", "head_to_dependent")
ALL, CLEAN = "all", "all_but_root_and_punctuation"
PUNCTUATION = frozenset({"punct", "P"})  # UD and Stanford; the CoNLL-X treebanks' P
LEFT_OUT = ("head_in_another_input", "no_token")
NOTICED = 1.5  # ours: times even attention; less, and a head is not said to look at a word
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
CLITICS = ("'s", "s'", "’s", "s’")
POSSESSIVE = {"stanford": {"poss"}, "universal": {"poss", "nmod:poss"}, "off": set[str]()}
REPLICATE_BYTES = 64 << 20  # ours: with many heads and relations, fewer replicates are kept
WORDS = {
    "accuracy": "share of words whose syntactic head is found",
    "offset_accuracy": "share of words whose syntactic head is found by a fixed offset",
    "count": "words asked for",
    "left_out": "words left out",
    "best_direction": "direction of the best head, an index of direction",
    "best_offset": "the best fixed offset",
    "baseline": "accuracy of the best offset, chosen on the same data",
    "advantage": "held-out accuracy of heads less that of the best offset",
    "from_others": "share of words whose syntactic head is found by words beside them",
}
RIVALS = (
    "the largest of three: the best fixed offset, the words beside, and what the head finds of all "
    "other relations"
)


class Dependency(Analysis, question=QUESTION):
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

    whole_maps: ClassVar[bool] = False

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
        self.options = self.checked(
            measure=measure, pieces=pieces, subtypes=subtypes, possessive=possessive
        )
        self.columns, self.member = _columns(scope.relations, relations, fold=subtypes == "fold")
        size = len(self.columns)
        cells = (2, scope.layers, scope.heads, len(DIRECTIONS), size)
        kept = max(2, REPLICATE_BYTES // (8 * math.prod(cells)))
        self.correct = self.sums(*cells, replicates=kept)
        self.from_others = self.sums(*cells[1:], replicates=kept)
        self.by_offset = self.sums(2, len(OFFSETS), size, replicates=kept)
        self.asked = self.sums(2, size, replicates=kept)
        self.left_out = self.sums(len(LEFT_OUT), replicates=0)
        self.noticed = self.sums(*cells[1:], replicates=kept)
        self.weight_above = self.sums(*cells[1:], replicates=kept)
        # of the batch that is looked at: its trees, the half of each example, and
        # [example, place, column] float32 1 where the word's answer counts for the column
        self._seen: tuple[SyntacticHeads, Ints, npt.NDArray[np.float32]] | None = None
        # of words and heads in both DIRECTIONS, then of the words on either side of these words
        self._pairs: list[WeightedPairs] = []
        self._place: Ints = np.zeros((0, 2), np.int64)  # [example and place, word] of each
        self._even: Float64 = np.zeros((0, 1, 0))  # [word, 1, pairs] even attention, of each

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Count, for each example, the words whose head each head of the layer finds."""
        if layer.index == 0:
            self._begin(batch)
        if self._seen is None:
            return
        heads, half, member = self._seen
        largest = layer.largest_words(
            batch, measure=self.options["measure"], pieces=self.options["pieces"]
        )
        answers = np.stack(largest, 2)  # [example, head, direction, place]

        def right(guess: Ints) -> Bools:
            """[example, head, direction, place] whether words at `asked` find each word's head."""
            answer = np.take_along_axis(answers, guess[:, None, None], 3)
            return np.asarray(answer == heads.head[:, None, None])

        hits = right(heads.judge)
        add_by_half(self.correct, _count(hits, member), half, batch.groups, at=(layer.index,))
        weight = self._weights(layer, batch)  # [example, head, pairs, place]
        noticed = self._noticed(weight)
        beside = np.stack([right(heads.beside[..., side]) for side in (0, 1)])
        beside &= np.stack([noticed[:, :, 2:4], noticed[:, :, 4:6]])
        sums = (
            (self.noticed, hits & noticed[:, :, :2]),
            (self.from_others, beside.mean(0)),
            (self.weight_above, weight[:, :, :2] - (weight[:, :, 2:4] + weight[:, :, 4:6]) / 2),
        )
        for of_layer, values in sums:
            of_layer.add(_count(values, member), batch.groups, at=(layer.index,))

    def _begin(self, batch: Batch) -> None:
        possessive = self.options["possessive"]
        heads = SyntacticHeads.of(batch, self.scope.relations, possessive=possessive)
        if not (heads.asked.any() or heads.left_out.any()):
            self._seen = None
            return
        half = halves(batch.units, seed=self.scope.seed)
        member = np.where(heads.asked[..., None], self.member[heads.label], 0)
        member[heads.root, self.columns.index(CLEAN)] = 0
        self._seen = heads, half, member.astype(np.float32)
        add_by_half(self.asked, member.sum(1), half, batch.groups)
        rows, place = np.nonzero(self._seen[2].any(-1) & (heads.head >= 0))
        words = heads.judge[rows, place], *heads.beside[rows, place].T
        head = heads.head[rows, place]
        ways = [way for word in words for way in ((word, head), (head, word))]
        self._pairs = [WeightedPairs.between_words(batch, rows, *way) for way in ways]
        self._place = np.stack([rows, place])
        self._even = np.stack([pairs.even(batch) for pairs in self._pairs], -1)[:, None]
        offsets = np.swapaxes(heads.by_offset, 1, 2)  # [example, offset, place]
        hits = offsets.astype(np.float32) @ self._seen[2]  # [example, offset, column]
        add_by_half(self.by_offset, hits, half, batch.groups)
        self.left_out.add(heads.left_out, batch.groups)

    def _weights(self, layer: LayerView, batch: Batch) -> Float64:
        """[example, head, pairs, place] attention between words and heads; see `_pairs`."""
        measure = self.options["measure"]
        values = np.stack(
            [pairs.sums(layer, batch, measure=measure) for pairs in self._pairs], -1
        )  # [word, head, pairs]
        weights = np.zeros((*batch.words.number.shape, *values.shape[1:]))
        weights[tuple(self._place)] = values
        return np.moveaxis(weights, 1, -1)

    def _noticed(self, weights: Float64) -> Bools:
        """Where weights [example, head, pairs, place] are well above those of even attention.

        All are by weighted norm, of which there is no even one.
        """
        if self.options["measure"] != "attention":
            return np.ones(weights.shape, bool)
        even = np.ones((weights.shape[0], weights.shape[-1], 1, weights.shape[2]))
        even[tuple(self._place)] = self._even
        return np.asarray(weights > NOTICED * np.moveaxis(even, 1, -1))

    def result(self) -> xr.Dataset:
        """Accuracies, baselines and the best heads; NaN for what was never asked."""
        # [replicate + 1, half, …, column]
        correct, offsets, totals = self.correct.sums, self.by_offset.sums, self.asked.sums
        heads, baseline = best(correct, totals), best(offsets, totals)
        both = totals.sum(1)  # [replicate + 1, column]
        layer, head, direction = heads.places
        offset = np.where(baseline.unit < 0, np.nan, np.array(OFFSETS)[baseline.unit])
        every, one = GRID, ("relation",)
        questions = both[:, None, None, None]
        accuracy = ratio(correct.sum(1), questions)
        from_others = ratio(self.from_others.sums, questions)
        rows = {
            "accuracy": (accuracy, every),
            "from_others": (from_others, every),
            "offset_accuracy": (ratio(offsets.sum(1), both[:, None]), ("offset", *one)),
            "count": (both[0].astype(np.int64), one),
            "left_out": (self.left_out.total.astype(np.int64), ("reason",)),
            "best_layer": (layer, one),
            "best_head": (head, one),
            "best_direction": (direction, one),
            "best_offset": (offset, one),
            "best_accuracy": (heads.chosen, one),
            "baseline": (baseline.chosen, one),
            "held_out": (heads.held_out, one),
            "advantage": (heads.held_out - baseline.chosen, one),
        }
        if self.scope.control:  # of what no claim compares, the value alone
            rows |= {
                name: (values[0], dims)
                for name, (values, dims) in rows.items()
                if values.ndim > len(dims) and name != "accuracy"
            }
        variables = counted(rows, WORDS, both, source=self.source)
        variables["left_out"] = replace(variables["left_out"], source="ours")
        variables["from_others"] = replace(variables["from_others"], source="ours", tidy=False)
        noticed = self.noticed.sums
        rivals = baseline.chosen[:, None, None, None], from_others, self._elsewhere(noticed, both)
        variables |= against_rivals(
            ratio(noticed, questions), rivals, every, RIVALS, questions=questions
        )
        if self.options["measure"] == "attention":  # norms are on no common scale
            beyond = ratio(self.weight_above.sums, questions)
            variables |= weight_above(beyond, every, sizes=questions)
        coords = {
            "direction": DIRECTIONS,
            "relation": self.columns,
            "offset": OFFSETS,
            "reason": LEFT_OUT,
        }
        return labelled(variables, coords=coords).assign_attrs(self.options)

    def _elsewhere(self, hits: Float64, totals: Float64) -> Float64:
        """What each head finds of all relations but this one; 0 for what is no relation of words.

        hits   [replicate + 1, layer, head, direction, column] sums of right answers
        totals  [replicate + 1, column] sums of questions
        """
        clean = self.columns.index(CLEAN)
        plain = self.member[:, clean] @ self.member > 0  # [column]
        plain[: clean + 1] = False
        others = [sums[..., clean, None] - sums for sums in (hits, totals[:, None, None, None])]
        return np.where(plain, ratio(others[0], others[1], absent=0), 0)


def _count(hits: Array, member: npt.NDArray[np.float32]) -> Array:
    """[example, head, direction, column] of hits [example, head, direction, place] the sums."""
    return np.asarray(hits.astype(np.float32) @ member[:, None])


def _columns(labels: tuple[str, ...], wanted: str, *, fold: bool) -> tuple[list[str], Float64]:
    """The columns of the result, and member [label, column]: 1 where a label counts for it."""
    names = [label.partition(":")[0] if fold else label for label in labels]
    kept = list(dict.fromkeys(names))
    requested = relation_names(wanted)
    if labels:
        refuse_unknown(requested, kept)
    kept = [name for name in kept if not requested or name in requested]
    member = np.zeros((len(names), 2 + len(kept)))
    for name, row in zip(names, member, strict=True):
        plain = name != ROOT and name.partition(":")[0] not in PUNCTUATION
        row[:] = [True, plain, *(name == column for column in kept)]
    return [ALL, CLEAN, *kept], member


@dataclass(frozen=True)
class SyntacticHeads:
    """The trees of a batch, in places (see `Words`).

    asked      [example, place] whether the word at this place counts
    root       [example, place] whether it is a root, whose head no head can find
    head       [example, place] place of its head; -2 where there is none (never an answer)
    label      [example, place] index into the corpus's relations; 0 where not asked
    judge      [example, place] the place whose answer is scored for it: its own, or its clitic's
    beside     [example, place, 2] the words beside it that do not stand in its relation to its
               head; of words beyond the head only where there are no others. Twice the same where
               there is one, and `judge` where there is none
    by_offset  [example, place, offset] whether each of OFFSETS gives the right answer
    left_out   [example, 2] words not asked for: the head is in another input; the word, or its
               head, has no token
    """

    asked: Bools
    root: Bools
    head: Ints
    label: Ints
    judge: Ints
    beside: Ints
    by_offset: Bools
    left_out: Ints

    @classmethod
    def of(cls, batch: Batch, relations: Sequence[str], *, possessive: str) -> Self:
        """Look up the trees of the examples; those without trees do not count."""
        shape = batch.words.number.shape
        own = np.tile(np.arange(shape[1]), (shape[0], 1))
        heads_of_batch = cls(
            np.zeros(shape, bool),
            np.zeros(shape, bool),
            np.full(shape, -2),
            np.zeros(shape, np.int64),
            own,
            np.stack([own, own], -1),
            np.zeros((*shape, len(OFFSETS)), bool),
            np.zeros((shape[0], 2), np.int64),
        )
        index = {name: at for at, name in enumerate(relations)}
        for row, (example, place) in enumerate(zip(batch.examples, batch.words.place, strict=True)):
            if has_tree(example):
                heads_of_batch._look_up(row, example, place, index, POSSESSIVE[possessive])
        return heads_of_batch

    def _look_up(
        self, row: int, example: Example, place: Ints, index: dict[str, int], possessive: Set[str]
    ) -> None:
        words = example.words
        assert words is not None
        heads = np.array([word.head for word in words])
        there = np.flatnonzero(place >= 0)  # [word] that have a place here
        if not len(there):
            return
        missing = (heads[there] >= 0) & (place[heads[there]] < 0)
        inside = (heads[there] > there[0]) & (heads[there] < there[-1])
        erased = there[-1] - there[0] + 1 - len(there)
        self.left_out[row] = (missing & ~inside).sum(), (missing & inside).sum() + erased
        counted = there[~missing]
        at, head = place[counted], heads[counted]
        self.asked[row, at] = True
        self.root[row, at] = head < 0
        self.head[row, at] = np.where(head < 0, -2, place[head])
        self.label[row, at] = [index[label(example, word)] for word in counted.tolist()]
        # the possessive clitic right behind a word is scored instead, where it applies
        clitic = [
            word.relation in possessive and after.form.lower() in CLITICS
            for word, after in pairwise(words)
        ]
        behind = np.array([*clitic, False]) & (np.append(place[1:], -1) >= 0)  # [word]
        judge = counted + behind[counted]
        self.judge[row, at] = place[judge]
        self.beside[row, at] = self._beside(row, at, place[there])
        # As the authors count: 0 is the root, words from 1; an offset stops at either end.
        answers = np.clip(judge[:, None] + 1 + np.array(OFFSETS), 0, len(heads))
        self.by_offset[row, at] = answers == head[:, None] + 1  # [word, offset]

    def _beside(self, row: int, at: Ints, places: Ints) -> Ints:
        """[word, 2] see `beside`: of the words at these places, among all places of the input."""
        head, label, judge = (part[row, at, None] for part in (self.head, self.label, self.judge))
        relatives = (self.head[row, places] == head) & (self.label[row, places] == label)
        relatives &= self.asked[row, places]
        others = ~relatives & (places != head) & (places != judge) & (places != at[:, None])
        return words_beside(judge[:, 0], places, others, places == head)
