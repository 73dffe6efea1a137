"""Which head finds the antecedent of a mention?

Of the words before it that are head words of mentions, the one that a mention's head word attends
to most is taken as its antecedent; the share of mentions for which that is a mention of the same
entity is the head's accuracy (Clark et al. 2019, §4.3). Beside it stand three rule systems, and the
accuracy of a head that was chosen on other documents. Does it find it because the word is a
mention? The nearest word that heads no mention is tested in the same way, with the same candidates.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import ClassVar, Self

import numpy as np
import xarray as xr

from headscope.analyses.coreference import QUESTION
from headscope.analyses.language.held_out import add_by_half, best, counted
from headscope.analyses.language.specific import against_rivals, weight_above
from headscope.core.accumulators import Array, Bools, Float64, Ints, halves, ratio
from headscope.core.results import labelled
from headscope.corpus.document import Mention, Word
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis, Scope

LEFT_OUT = ("crosses_window", "no_antecedent", "same_head_word", "no_token")


@dataclass(frozen=True, slots=True)
class PhraseFeatures:
    """What a noun phrase must agree in; None is unknown and agrees with everything."""

    person: int | None = None
    number: str | None = None
    gender: str | None = None

    def agrees(self, other: Self) -> bool:
        """Whether no feature that is known of both differs."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return all(a is None or b is None or a == b for a, b in pairs)


# The personal, possessive and reflexive pronouns of English, with old and contracted ones, and the
# demonstratives.
PRONOUNS = {
    form: features
    for forms, features in {
        "i me my mine myself": PhraseFeatures(1, "singular"),
        "we us our ours ourselves ourself": PhraseFeatures(1, "plural"),
        "you your yours ye": PhraseFeatures(2),
        "yourself thou thee thy thine thyself": PhraseFeatures(2, "singular"),
        "yourselves": PhraseFeatures(2, "plural"),
        "he him his himself": PhraseFeatures(3, "singular", "masculine"),
        "she her hers herself": PhraseFeatures(3, "singular", "feminine"),
        "it its itself 't": PhraseFeatures(3, "singular", "neuter"),
        "they them their theirs themselves 'em ’em these those": PhraseFeatures(3, "plural"),
        "this that oneself": PhraseFeatures(3, "singular"),
        "themself": PhraseFeatures(3),
    }.items()
    for form in forms.split()
}


@dataclass(frozen=True, slots=True)
class DescribedMention:
    """A mention and what the rules compare, without regard to case."""

    mention: Mention
    text: str
    head: str
    features: PhraseFeatures

    @classmethod
    def of(cls, mention: Mention, words: Sequence[Word]) -> Self:
        """Read the words of a mention; a proper or nominal one is third person, whatever it is."""
        text = " ".join(w.form for w in words[mention.first : mention.last + 1]).casefold()
        head = words[mention.head].form.casefold()
        noun = mention.kind in ("proper", "nominal")
        return cls(
            mention, text, head, PhraseFeatures(3) if noun else PRONOUNS.get(head, PhraseFeatures())
        )


@dataclass(frozen=True, slots=True)
class MentionQuestion:
    """Which of the mentions before it does a mention refer back to?

    asked        the mention
    candidates   the mentions whose head word comes before its own, the nearest first
    antecedents  head words of those candidates that are mentions of the same entity: any is right
    other        the nearest word outside the mention that is no mention's head word, the one behind
                 of two as near; its own head word where there is none
    """

    asked: DescribedMention
    candidates: tuple[DescribedMention, ...]
    antecedents: frozenset[int]
    other: int


def mention_questions(
    words: Sequence[Word], mentions: Sequence[Mention], place: Ints
) -> tuple[list[MentionQuestion], Counter[str]]:
    """The questions that one input can answer, by position, and why mentions are left out.

    place    [word] at least 0 where the word has a token in this input
    returns  the questions, and how many mentions are left out for each of LEFT_OUT:
             crosses_window  a word of it is in another input; never a candidate either
             no_token        its head word got no token; never a candidate either
             same_head_word  a longer mention, or one as long that is listed first, has the same
                             head word; never a candidate either
             no_antecedent   no mention of its entity comes before it in this input

    A mention belongs to the input that its head word lies in, and is counted there only.
    """
    there = np.flatnonzero(place >= 0)
    left_out: Counter[str] = Counter()
    by_head: dict[int, Mention] = {}
    for mention in mentions:
        if not len(there) or not there[0] <= mention.head <= there[-1]:
            continue
        if mention.first < there[0] or mention.last > there[-1]:
            left_out["crosses_window"] += 1
        elif place[mention.head] < 0:
            left_out["no_token"] += 1
        else:
            rival = by_head.setdefault(mention.head, mention)
            if rival is not mention:
                left_out["same_head_word"] += 1
                by_head[mention.head] = max(rival, mention, key=lambda m: m.last - m.first)
    kept = [DescribedMention.of(by_head[head], words) for head in sorted(by_head)]
    plain = there[~np.isin(there, list(by_head))]
    questions = []
    for index, described in enumerate(kept):
        candidates, entity = tuple(reversed(kept[:index])), described.mention.entity
        same = frozenset(c.mention.head for c in candidates if c.mention.entity == entity)
        questions.append(
            MentionQuestion(described, candidates, same, _outside(described.mention, plain))
        )
    left_out["no_antecedent"] = sum(not question.antecedents for question in questions)
    return [question for question in questions if question.antecedents], left_out


def _outside(mention: Mention, words: Ints) -> int:
    """The given word nearest to a mention's head word that is not in the mention, else that."""
    around = words[(words < mention.first) | (words > mention.last)]
    if not len(around):
        return mention.head
    return int(around[np.lexsort((-around, abs(around - mention.head)))[0]])


Sieve = Callable[[DescribedMention, DescribedMention], bool]
SIEVES: dict[str, Sieve] = {
    "same_text": lambda asked, other: other.text == asked.text,
    "same_head": lambda asked, other: other.head == asked.head,
    "agreement": lambda asked, other: other.features.agrees(asked.features),
    "any": lambda asked, other: True,
}
# The rule systems: each answers with the nearest mention that passes its strictest sieve that any
# mention passes; without one it has no answer. Features are known of English pronouns (PRONOUNS)
# only, and that a proper or nominal mention is third person; the paper does not say where it took
# them from.
SYSTEMS = {"nearest": ("any",), "head_match": ("same_head",), "rule_based": tuple(SIEVES)}


def answer(system: str, question: MentionQuestion) -> int | None:
    """The head word of the preceding mention that one of SYSTEMS takes for the antecedent."""
    for sieve in SYSTEMS[system]:
        for candidate in question.candidates:
            if SIEVES[sieve](question.asked, candidate):
                return candidate.mention.head
    return None


MENTION_TYPES = ("all", "pronoun", "proper", "nominal")
MODES = ("accuracy", "accuracy_strict")
FOUND = "share of mentions whose antecedent is found"
WORDS = {
    "accuracy": f"{FOUND} among the head words of preceding mentions",
    "accuracy_strict": f"{FOUND} among all words of the input",
    "baseline": f"{FOUND} by a rule system",
    "advantage": "held-out accuracy of heads less that of a rule system",
    "from_others": f"{FOUND} by the nearest word that is no mention, among the same candidates",
    "count": "mentions asked about",
    "left_out": "mentions left out",
}
RIVALS = (
    "the largest of these: the rule systems, the nearest word that is no mention, and what the "
    "head finds of the other types of mention"
)
EVERY = ("layer", "head", "mention_type")


class Coreference(Analysis, question=QUESTION):
    """Accuracy of every head at finding an antecedent, by type of mention, beside rule systems.

    pieces   attention from a word of several tokens: their "mean", that of the "first", or "max"
    measure  "attention" or "weighted_norm"

    A mention counts if a mention of its entity comes before it in the same input; one comes
    before another if its head word does. Any antecedent is right, not only the nearest. `accuracy`
    looks at the head words of all mentions before it (singletons too), `accuracy_strict` at all
    words of the input but its own head word; special tokens are passed over in both. The first of
    equal weights counts, and where no weight is above 0 the answer is wrong. The paper leaves open
    what the candidates are, and cuts documents to 128 tokens; here every window is an input.

    A mention whose type is unknown counts in `all` only. `mention_questions` says which
    mentions are left out.
    """

    whole_maps: ClassVar[bool] = False

    def __init__(self, scope: Scope, *, pieces: str = "mean", measure: str = "attention") -> None:
        super().__init__(scope)
        self.options = self.checked(measure=measure, pieces=pieces)
        types = len(MENTION_TYPES)
        self.correct = self.sums(2, scope.layers, scope.heads, len(MODES), types)  # by half
        self.from_others = self.sums(scope.layers, scope.heads, types)
        self.weight_above = self.sums(scope.layers, scope.heads, types)
        self.by_system = self.sums(len(SYSTEMS), types)
        self.count = self.sums(2, types)  # by half
        self.left_out = self.sums(len(LEFT_OUT), replicates=0)
        self._asked: _Asked | None = None

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Count, for each example, the mentions whose antecedent each head of the layer finds."""
        if layer.index == 0:
            self._begin(batch)
        members = self._asked
        if members is None:
            return
        rows = layer.word_rows(
            batch, members.places, measure=self.options["measure"], pieces=self.options["pieces"]
        )
        weights = rows.detach().cpu().numpy()
        mentions, others = weights[:, :, ::2], weights[:, :, 1::2]
        right = [members.right(mentions, mode) for mode in range(len(MODES))]
        values = np.stack(right, 2) @ members.member[:, None]  # [example, head, mode, type]
        add_by_half(self.correct, values, members.half, batch.groups, at=(layer.index,))
        by_others = members.right(others, 0) @ members.member  # [example, head, type]
        self.from_others.add(by_others, batch.groups, at=(layer.index,))
        beyond = np.where(members.antecedent[:, None], mentions - others, 0)
        by_type = beyond.sum(-1, dtype=np.float64) @ members.member  # [example, head, type]
        self.weight_above.add(by_type, batch.groups, at=(layer.index,))

    def _begin(self, batch: Batch) -> None:
        rows = [
            mention_questions(e.words or (), e.mentions, place)
            for e, place in zip(batch.examples, batch.words.place, strict=True)
        ]
        left_out = [[reasons[reason] for reason in LEFT_OUT] for _, reasons in rows]
        self.left_out.add(np.array(left_out), batch.groups)
        if not any(row for row, _ in rows):
            self._asked = None
            return
        self._asked = members = _Asked.of([row for row, _ in rows], batch, seed=self.scope.seed)
        self.by_system.add(members.by_system @ members.member, batch.groups)
        add_by_half(self.count, members.member.sum(1), members.half, batch.groups)

    def result(self) -> xr.Dataset:
        """Accuracies, baselines and the best heads; NaN for types that were never asked about."""
        count = self.count.sums.sum(1)  # [replicate + 1, type]
        correct = self.correct.sums.sum(1)  # [replicate + 1, layer, head, mode, type]
        accuracy = ratio(correct, count[:, None, None, None])
        baseline = ratio(self.by_system.sums, count[:, None])
        heads = best(self.correct.sums[..., 0, :], self.count.sums)
        layer, head = heads.places
        one = EVERY[2:]
        from_others = ratio(self.from_others.sums, count[:, None, None])
        rows = {
            "accuracy": (accuracy[..., 0, :], EVERY),
            "accuracy_strict": (accuracy[..., 1, :], EVERY),
            "from_others": (from_others, EVERY),
            "baseline": (baseline, ("system", *one)),
            "best_layer": (layer, one),
            "best_head": (head, one),
            "best_accuracy": (heads.chosen, one),
            "held_out": (heads.held_out, one),
            "advantage": (heads.held_out[:, None] - baseline, ("system", *one)),
            "count": (count[0].astype(np.int64), one),
            "left_out": (self.left_out.total.astype(np.int64), ("reason",)),
        }
        variables = counted(rows, WORDS, count, source=self.source)
        variables["from_others"] = replace(variables["from_others"], source="ours", tidy=False)
        correct_of_mentions = correct[..., 0, :]
        of_all, of_count = correct_of_mentions[..., :1], count[:, None, None, :1]
        elsewhere = ratio(of_all - correct_of_mentions, of_count - count[:, None, None], absent=0)
        systems = baseline[:, :, None, None].swapaxes(0, 1)  # [system, replicate + 1, 1, 1, type]
        variables |= against_rivals(
            accuracy[..., 0, :],
            (*systems, from_others, elsewhere),
            EVERY,
            RIVALS,
            questions=count[:, None, None],
        )
        if self.options["measure"] == "attention":  # norms are on no common scale
            beyond = ratio(self.weight_above.sums, count[:, None, None])
            variables |= weight_above(beyond, EVERY, sizes=count[:, None, None])
        coords = {"mention_type": MENTION_TYPES, "system": tuple(SYSTEMS), "reason": LEFT_OUT}
        return labelled(variables, coords=coords).assign_attrs(self.options)


@dataclass(frozen=True)
class _Asked:
    """The questions of a batch, a row for each, in places (see `Words`).

    half        [example] 0 or 1
    places      [example, 2·row] of the head words asked about, each with the other word behind it;
                -1 behind the last of an example
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
    def of(cls, rows: Sequence[Sequence[MentionQuestion]], batch: Batch, *, seed: int) -> Self:
        shape = (len(rows), max(map(len, rows)))
        new = cls(
            half=halves(batch.units, seed=seed),
            places=np.full((shape[0], 2 * shape[1]), -1),
            usable=np.zeros((len(MODES), *shape, batch.words.most), bool),
            antecedent=np.zeros((*shape, batch.words.most), bool),
            by_system=np.zeros((shape[0], len(SYSTEMS), shape[1])),
            member=np.zeros((*shape, len(MENTION_TYPES))),
        )
        new.usable[1] = batch.words.real[:, None]
        for example, (questions, place) in enumerate(zip(rows, batch.words.place, strict=True)):
            for row, question in enumerate(questions):
                mention, right, at = question.asked.mention, question.antecedents, (example, row)
                new.places[example, 2 * row : 2 * row + 2] = place[[mention.head, question.other]]
                new.usable[0][at][place[[c.mention.head for c in question.candidates]]] = True
                new.usable[1][at][place[mention.head]] = False
                new.antecedent[at][place[list(right)]] = True
                new.by_system[example, :, row] = [answer(s, question) in right for s in SYSTEMS]
                new.member[at] = [kind in ("all", mention.kind) for kind in MENTION_TYPES]
        return new

    def right(self, weights: Array, mode: int) -> Float64:
        """[example, head, row] 1 where the largest weight goes to an antecedent, by one of MODES.

        weights  [example, head, row, place]; the first of equals counts, and 0 is no answer
        """
        left = np.where(self.usable[mode][:, None], weights, 0)
        best = left.argmax(-1)[..., None]  # [example, head, row, 1]
        positive = np.take_along_axis(left, best, -1) > 0
        hits = positive & np.take_along_axis(self.antecedent[:, None], best, -1)
        return hits[..., 0].astype(np.float64)  # [example, head, row]
