"""How often does a head, or a rule, point from a mention to one of its antecedents?

Clark et al. (2019), section 4.3, with gold mentions; what the paper leaves open is as in the
product: any antecedent is right, candidates are the head words of the preceding mentions of the
input or, strictly, all words but the mention's own head. One input at a time, in loops.

A mention is (entity, first, last, head, kind); indices of words are those of the whole document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mention = tuple[str, int, int, int, str | None]
# form: person, number, gender; "?" is unknown
KNOWN = {
    "i": "1s?", "me": "1s?", "my": "1s?", "mine": "1s?", "myself": "1s?",
    "we": "1p?", "us": "1p?", "our": "1p?", "ours": "1p?", "ourselves": "1p?",
    "you": "2??", "your": "2??", "yours": "2??", "ye": "2??", "yourself": "2s?",
    "yourselves": "2p?", "thou": "2s?", "thee": "2s?", "thy": "2s?", "thine": "2s?",
    "thyself": "2s?", "he": "3sm", "him": "3sm", "his": "3sm", "himself": "3sm",
    "she": "3sf", "her": "3sf", "hers": "3sf", "herself": "3sf",
    "it": "3sn", "its": "3sn", "itself": "3sn",
    "they": "3p?", "them": "3p?", "their": "3p?", "theirs": "3p?", "themselves": "3p?",
    "ourself": "1p?", "'t": "3sn", "'em": "3p?", "’em": "3p?", "oneself": "3s?", "themself": "3??",
    "these": "3p?", "those": "3p?", "this": "3s?", "that": "3s?",
}  # fmt: skip


class Asked(TypedDict):
    """One mention that has an antecedent in the input, and who finds one."""

    kind: str | None
    primary: NDArray[np.bool_]  # [layer, head]
    strict: NDArray[np.bool_]  # [layer, head]
    systems: dict[str, bool]


def asked(
    maps: Array, present: Sequence[int], mentions: Sequence[Mention], forms: Sequence[str]
) -> list[Asked]:
    """Every mention of one input that is asked about.

    maps     [layer, head, word, word] between the words that are present, in their order
    present  their numbers in the document
    forms    of all words of the document
    """
    here = usable(mentions, present)
    found: list[Asked] = []
    for mention in here:
        before = [m for m in here if m[3] < mention[3]]
        antecedents = {m[3] for m in before if m[0] == mention[0]}
        if not antecedents:
            continue
        heads_before = [m[3] for m in before]
        others = [w for w in present if w != mention[3]]
        answers = {
            name: _right(maps, present, mention[3], words, antecedents)
            for name, words in (("primary", heads_before), ("strict", others))
        }
        systems = {
            name: rule(mention, before, forms) in antecedents for name, rule in RULES.items()
        }
        found.append({"kind": mention[4], "systems": systems, **answers})
    return found


def usable(mentions: Sequence[Mention], present: Sequence[int]) -> list[Mention]:
    """Mentions wholly within the input whose head is there, one per head word, in their order."""
    inside = [
        m for m in mentions if m[3] in present and min(present) <= m[1] <= m[2] <= max(present)
    ]
    chosen = []
    for head in sorted({m[3] for m in inside}):
        rivals = [m for m in inside if m[3] == head]
        longest = max(m[2] - m[1] for m in rivals)
        chosen.append(next(m for m in rivals if m[2] - m[1] == longest))
    return chosen


def _right(
    maps: Array, present: Sequence[int], word: int, among: Sequence[int], antecedents: set[int]
) -> NDArray[np.bool_]:
    at = {number: place for place, number in enumerate(present)}
    out = np.zeros(maps.shape[:2], dtype=bool)
    for layer in range(maps.shape[0]):
        for head in range(maps.shape[1]):
            weights = {w: maps[layer, head, at[word], at[w]] for w in sorted(among)}
            largest = max(weights.values())
            answer = next(w for w, weight in weights.items() if weight == largest)
            out[layer, head] = largest > 0 and answer in antecedents
    return out


def nearest(mention: Mention, before: Sequence[Mention], forms: Sequence[str]) -> int | None:
    """The head of the nearest preceding mention."""
    return max((m[3] for m in before), default=None)


def head_match(mention: Mention, before: Sequence[Mention], forms: Sequence[str]) -> int | None:
    """The nearest with the same head word."""
    same = [m[3] for m in before if forms[m[3]].lower() == forms[mention[3]].lower()]
    return max(same, default=None)


def rule_based(mention: Mention, before: Sequence[Mention], forms: Sequence[str]) -> int | None:
    """The nearest of those that pass the strictest sieve that any passes."""

    def passed(m: Mention) -> int:
        if _text(m, forms) == _text(mention, forms):
            return 3
        if forms[m[3]].lower() == forms[mention[3]].lower():
            return 2
        pairs = zip(_features(m, forms), _features(mention, forms), strict=True)
        return int(all("?" in pair or pair[0] == pair[1] for pair in pairs))

    return max(((passed(m), m[3]) for m in before), default=(0, None))[1]


RULES = {"nearest": nearest, "head_match": head_match, "rule_based": rule_based}


def _text(mention: Mention, forms: Sequence[str]) -> list[str]:
    return [form.lower() for form in forms[mention[1] : mention[2] + 1]]


def _features(mention: Mention, forms: Sequence[str]) -> str:
    if mention[4] in ("proper", "nominal"):
        return "3??"
    return KNOWN.get(forms[mention[3]].lower(), "???")
