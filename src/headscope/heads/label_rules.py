"""When does a claim become a label of a head? Every rule with its threshold and source.

A rule asks for the lower end of the 95 % interval (for the value, where there is none): it must lie
above the threshold. So a head that merely may pass stays unlabelled. What a claim must fulfil
besides stands in `asks`; claims of that kind are made only where it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from headscope.core.claim import Claim
from headscope.core.terms import CLARK, KOBAYASHI20, KOVALEVA, OURS
from headscope.heads.roles import BROAD_SHARE, POSITION, SPECIAL

MOST = 4  # ours: labels of one head
MOST_OF_KIND = {"dependency": 2}  # ours: of one kind; 1 of any other
SINK_SHARE = 0.5  # ours: most of the attention rests there
SINK_NORM = 0.5  # ours: of what all other tokens contribute
SHARED_PART = 0.25  # ours: of the weight that [CLS] and [SEP] share, what either has at least
NARROW_SHARE = 0.5  # ours: of the uniform entropy
CLASS_SHARE = 0.5  # ours: of a head's maps
CLASS_SURE = 0.5  # ours: mean probability that the classifier gives to the class it tells
PAIR_SHARE = 0.5  # ours, as a position: of the attention of a word
FEATURE_TIMES = 3.0  # ours: the mean head
FEATURE_SHARE = 0.1  # ours: of the attention of all tokens

POSITIONS = ("previous", "next", "self")
TARGETS = (*POSITIONS, "first", "cls", "sep", "special", "punctuation", "sink")
OTHERS = (
    *TARGETS, "broad", "narrow", "dependency", "coreference", "frames", "pair", "feature", "block",
)  # fmt: skip
# Ours: how the maps look says least of a head, so it is told where nothing else is.
LOOKS = ("vertical", "diagonal", "vertical_diagonal")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    title    what labels of the kind say, in two or three words
    number   what is compared, a share of 1
    least    above which the lower end of its interval must lie
    source   whose threshold it is
    asks     what else must hold, in words
    unless   kinds of labels that say it already: a head that has one is not given this
    """

    title: str
    number: str
    least: float
    source: str
    asks: str = ""
    unless: tuple[str, ...] = ()


_CLASSES = f"{OURS}; classes of {KOVALEVA}, §4.1"
_SURE = f"the classifier's mean probability for the class that it tells is above {CLASS_SURE:g}"
_HELD_OUT = (
    "the head is the best of all for {what}, of 25 or more, and on documents that it was not "
    "chosen on it beats {rival}: the interval of the advantage lies above 0; effect above 0.05"
)
RULES = {
    "previous": Rule(
        "previous token",
        number="attention to the previous token", least=POSITION, source=f"{CLARK}, §6",
    ),
    "next": Rule(
        "next token",
        number="attention to the next token", least=POSITION, source=f"{CLARK}, §6",
    ),
    "self": Rule(
        "token itself",
        number="attention of tokens to themselves", least=POSITION,
        source=f"{OURS}, as for a position",
    ),
    "first": Rule(
        "first token",
        number="attention to the first token", least=SPECIAL, source=f"{OURS}, as for [CLS]",
        asks="the tokenizer has no [CLS]",
    ),
    "cls": Rule(
        "[CLS]",
        number="attention to [CLS]", least=SPECIAL, source=f"{CLARK}, §6", unless=("sink",),
    ),
    "sep": Rule(
        "[SEP]",
        number="attention to [SEP]", least=SPECIAL, source=f"{CLARK}, §6", unless=("sink",),
    ),
    "special": Rule(
        "[CLS] and [SEP]",
        number="attention to [CLS] and [SEP] together", least=SPECIAL,
        source=f"{OURS}, as for each", asks=f"either has {SHARED_PART:g} of it",
        unless=("cls", "sep", "sink"),
    ),
    "punctuation": Rule(
        "punctuation",
        number="attention to full stops and commas", least=SPECIAL, source=f"{CLARK}, §6",
    ),
    "sink": Rule(
        "attention sink",
        number="attention to [CLS], to [SEP], or to both together", least=SINK_SHARE,
        source=f"{OURS}, after {KOBAYASHI20}",
        asks=f"what they add has a norm less than {SINK_NORM:g} of what all other tokens but full "
        "stops and commas add, upper end against lower end; both together only where either has "
        f"{SHARED_PART:g} of the attention to them",
    ),
    "broad": Rule(
        "broad, near-uniform",
        number="entropy, of that of uniform attention", least=BROAD_SHARE,
        source=f"{OURS}; {CLARK}, §6: 3.8 nats, for inputs of up to 128 tokens",
    ),
    "narrow": Rule(
        "few tokens, no one target",
        number="1 − entropy, of that of uniform attention", least=1 - NARROW_SHARE, source=OURS,
        asks=f"no one target has {POSITION:g} of the attention", unless=TARGETS,
    ),
    "dependency": Rule(
        "syntactic relation",
        number="words of a relation whose head, or dependent, gets the most attention", least=0.0,
        source=f"{OURS}, after {CLARK}, §4.2",
        asks=_HELD_OUT.format(what="the relation", rival="the best fixed offset"),
    ),
    "coreference": Rule(
        "coreference",
        number="mentions whose antecedent gets the most attention", least=0.0,
        source=f"{OURS}, after {CLARK}, §4.3",
        asks=_HELD_OUT.format(what="the kind of mention", rival="the nearest mention"),
    ),
    "frames": Rule(
        "frames",
        number="largest attention between frame element and target", least=0.0,
        source=f"{OURS}, after {KOVALEVA}, §4.2",
        asks="p ≤ 0.05 against chance, corrected for looking at all heads; effect above 0.05",
    ),
    "pair": Rule(
        "pair of words",
        number="largest attention from subject to verb, from noun to pronoun, or back",
        least=PAIR_SHARE, source=f"{OURS}, after {KOVALEVA}, §4.5",
        asks="the largest of all heads, over 25 inputs or more", unless=POSITIONS,
    ),
    "feature": Rule(
        "kind of words",
        number="attention of all tokens to the most attended noun, verb, pronoun, subject, object "
        "or negation", least=FEATURE_SHARE, source=f"{OURS}, after {KOVALEVA}, §4.4",
        asks="the largest of all heads, over 25 inputs or more; lower end above "
        f"{FEATURE_TIMES:g} times the mean head",
    ),
    "block": Rule(
        "block", number="maps of the class", least=CLASS_SHARE, source=_CLASSES, asks=_SURE
    ),
    "vertical": Rule(
        "vertical",
        number="maps of the class", least=CLASS_SHARE, source=_CLASSES, asks=_SURE, unless=OTHERS,
    ),
    "diagonal": Rule(
        "diagonal",
        number="maps of the class", least=CLASS_SHARE, source=_CLASSES, asks=_SURE, unless=OTHERS,
    ),
    "vertical_diagonal": Rule(
        "vertical + diagonal",
        number="maps of the class", least=CLASS_SHARE, source=_CLASSES, asks=_SURE, unless=OTHERS,
    ),
}  # fmt: skip


def passes(claim: Claim) -> bool:
    """Whether a claim is a label by its number, before others that say the same are left out."""
    return claim.surely > RULES[claim.kind].least


def rule_words(kind: str) -> str:
    """A rule in one line: `attention to [CLS] above 0.6 (Clark et al. 2019, §6)`."""
    rule = RULES[kind]
    above = f" above {rule.least:g}" if rule.least else ""
    asks = f"; {rule.asks}" if rule.asks else ""
    return f"{rule.number}{above}{asks} ({rule.source})"
