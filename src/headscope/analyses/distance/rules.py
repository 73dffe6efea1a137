"""The rules behind the labels of this question: fixed distances, windows that fade, everywhere."""

from functools import partial

import numpy as np

from headscope.claims.attention_rule import POSITION, AttentionRule, Rows, RuleInput

FADES = {2: 0.5, 5: 0.8, 20: 0.95}  # about how many tokens -> share left a token on


def _at(offset: int, read: RuleInput) -> Rows:
    return read.even(read.offset == offset)


def _within_three(read: RuleInput) -> Rows:
    return read.even(np.abs(read.offset) <= 3)


def _fading(share: float, side: int, read: RuleInput) -> Rows:
    there = read.offset * side >= 0 if side else np.ones_like(read.visible)
    return read.weighted(np.where(there, share ** np.abs(read.offset), 0.0))


def _rules() -> list[AttentionRule]:
    words = {-3: "three tokens back", -2: "two tokens back", 2: "two tokens on", 3: "three on"}
    rules = [AttentionRule(name, POSITION, partial(_at, offset)) for offset, name in words.items()]
    sides = {-1: "before", 1: "behind", 0: "around"}
    for tokens, share in FADES.items():
        for side, name in sides.items():
            words_of = f"the {tokens} or so tokens {name}"
            rules.append(AttentionRule(words_of, POSITION, partial(_fading, share, side)))
    nearby = AttentionRule("the tokens within three", POSITION, _within_three)
    everywhere = AttentionRule("all tokens evenly", POSITION, lambda read: read.even(read.visible))
    return [*rules, nearby, everywhere]


RULES = tuple(_rules())
