"""The earlier mention that a mention refers back to: by the annotation, and by simple rules.

Pure functions of words and mentions: what is asked of a head in one input, and what the baselines
of Clark et al. (2019), §4.3, answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.corpus.document import Mention, Word

LEFT_OUT = ("crosses_window", "no_antecedent", "same_head_word", "no_token")


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a noun phrase must agree in; None is unknown and agrees with everything."""

    person: int | None = None
    number: str | None = None
    gender: str | None = None

    def agrees(self, other: Agreement) -> bool:
        """Whether no feature that is known of both differs."""
        pairs = (
            (self.person, other.person), (self.number, other.number), (self.gender, other.gender),
        )  # fmt: skip
        return all(a is None or b is None or a == b for a, b in pairs)


# The personal, possessive and reflexive pronouns of English, with old and contracted ones, and the
# demonstratives.
PRONOUNS = {
    form: features
    for forms, features in {
        "i me my mine myself": Agreement(1, "singular"),
        "we us our ours ourselves ourself": Agreement(1, "plural"),
        "you your yours ye": Agreement(2),
        "yourself thou thee thy thine thyself": Agreement(2, "singular"),
        "yourselves": Agreement(2, "plural"),
        "he him his himself": Agreement(3, "singular", "masculine"),
        "she her hers herself": Agreement(3, "singular", "feminine"),
        "it its itself 't": Agreement(3, "singular", "neuter"),
        "they them their theirs themselves 'em ’em these those": Agreement(3, "plural"),
        "this that oneself": Agreement(3, "singular"),
        "themself": Agreement(3),
    }.items()
    for form in forms.split()
}
NOUN_PHRASE = Agreement(3)


@dataclass(frozen=True, slots=True)
class DescribedMention:
    """A mention and what the rules compare, without regard to case."""

    mention: Mention
    text: str
    head: str
    features: Agreement

    @classmethod
    def of(cls, mention: Mention, words: Sequence[Word]) -> DescribedMention:
        """Read the words of a mention; a proper or nominal one is third person, whatever it is."""
        text = " ".join(w.form for w in words[mention.first : mention.last + 1]).casefold()
        head = words[mention.head].form.casefold()
        if mention.kind in ("proper", "nominal"):
            return cls(mention, text, head, NOUN_PHRASE)
        return cls(mention, text, head, PRONOUNS.get(head, Agreement()))


@dataclass(frozen=True, slots=True)
class MentionQuestion:
    """Which of the mentions before it does a mention refer back to?

    asked        the mention
    candidates   the mentions whose head word comes before its own, the nearest first
    antecedents  head words of those candidates that are mentions of the same entity: any is right
    """

    asked: DescribedMention
    candidates: tuple[DescribedMention, ...]
    antecedents: frozenset[int]


def mention_questions(
    words: Sequence[Word], mentions: Sequence[Mention], place: npt.NDArray[np.int64]
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
    asked = [_question(kept, index) for index in range(len(kept))]
    left_out["no_antecedent"] = sum(not question.antecedents for question in asked)
    return [question for question in asked if question.antecedents], left_out


def _question(kept: Sequence[DescribedMention], index: int) -> MentionQuestion:
    asked, candidates = kept[index], tuple(reversed(kept[:index]))
    entity = asked.mention.entity
    same = frozenset(c.mention.head for c in candidates if c.mention.entity == entity)
    return MentionQuestion(asked, candidates, same)


# --- the baselines --------------------------------------------------------------------------


def nearest(question: MentionQuestion) -> int | None:
    """Head word of the nearest preceding mention."""
    return _first(question, lambda _: True)


def head_match(question: MentionQuestion) -> int | None:
    """Head word of the nearest preceding mention with the same head word; None without one."""
    return _first(question, lambda candidate: candidate.head == question.asked.head)


def rule_based(question: MentionQuestion) -> int | None:
    """Head word of the nearest mention that passes the strictest sieve that any mention passes.

    The sieves: the same words; the same head word; agreement in person, number and gender; any
    preceding mention. Agreement is known of English pronouns (PRONOUNS) only, and that a proper or
    nominal mention is third person; the paper does not say where it took it from.
    """
    asked = question.asked
    sieves: tuple[Callable[[DescribedMention], bool], ...] = (
        lambda candidate: candidate.text == asked.text,
        lambda candidate: candidate.head == asked.head,
        lambda candidate: candidate.features.agrees(asked.features),
        lambda _: True,
    )
    found = (_first(question, sieve) for sieve in sieves)
    return next((head for head in found if head is not None), None)


def _first(question: MentionQuestion, accepts: Callable[[DescribedMention], bool]) -> int | None:
    return next((c.mention.head for c in question.candidates if accepts(c)), None)


SYSTEMS: dict[str, Callable[[MentionQuestion], int | None]] = {
    "nearest": nearest, "head_match": head_match, "rule_based": rule_based,
}  # fmt: skip
