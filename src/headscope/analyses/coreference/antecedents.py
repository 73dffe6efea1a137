"""The earlier mention that a mention refers back to: by the annotation, and by simple rules.

Pure functions of words and mentions: what is asked of a head in one input, and what the baselines
of Clark et al. (2019), §4.3, answer.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Self

import numpy as np

from headscope.core.accumulators import Ints
from headscope.corpus.document import Mention, Word

LEFT_OUT = ("crosses_window", "no_antecedent", "same_head_word", "no_token")


@dataclass(frozen=True, slots=True)
class Agreement:
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


@dataclass(frozen=True, slots=True)
class DescribedMention:
    """A mention and what the rules compare, without regard to case."""

    mention: Mention
    text: str
    head: str
    features: Agreement

    @classmethod
    def of(cls, mention: Mention, words: Sequence[Word]) -> Self:
        """Read the words of a mention; a proper or nominal one is third person, whatever it is."""
        text = " ".join(w.form for w in words[mention.first : mention.last + 1]).casefold()
        head = words[mention.head].form.casefold()
        noun = mention.kind in ("proper", "nominal")
        return cls(mention, text, head, Agreement(3) if noun else PRONOUNS.get(head, Agreement()))


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
    questions = []
    for index, asked in enumerate(kept):
        candidates, entity = tuple(reversed(kept[:index])), asked.mention.entity
        same = frozenset(c.mention.head for c in candidates if c.mention.entity == entity)
        questions.append(MentionQuestion(asked, candidates, same))
    left_out["no_antecedent"] = sum(not question.antecedents for question in questions)
    return [question for question in questions if question.antecedents], left_out


Sieve = Callable[[DescribedMention, DescribedMention], bool]
SIEVES: dict[str, Sieve] = {
    "same_text": lambda asked, other: other.text == asked.text,
    "same_head": lambda asked, other: other.head == asked.head,
    "agreement": lambda asked, other: other.features.agrees(asked.features),
    "any": lambda asked, other: True,
}
# The rule systems: each answers with the nearest mention that passes its strictest sieve that any
# mention passes; without one it has no answer. Agreement is known of English pronouns (PRONOUNS)
# only, and that a proper or nominal mention is third person; the paper does not say where it took
# it from.
SYSTEMS = {"nearest": ("any",), "head_match": ("same_head",), "rule_based": tuple(SIEVES)}


def answer(system: str, question: MentionQuestion) -> int | None:
    """The head word of the preceding mention that one of SYSTEMS takes for the antecedent."""
    for sieve in SYSTEMS[system]:
        for candidate in question.candidates:
            if SIEVES[sieve](question.asked, candidate):
                return candidate.mention.head
    return None
