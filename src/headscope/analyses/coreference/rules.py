"""The rules behind the labels of this question: earlier mentions of the same entity."""

from collections.abc import Iterator
from typing import Any

from headscope.claims.attention_rule import LANGUAGE, AttentionRule, Rows, RuleInput


def _antecedents(read: RuleInput) -> Rows:
    def pairs() -> Iterator[tuple[int, int]]:
        for one in read.mentions:
            for other in read.mentions:
                if other.entity == one.entity and other.head < one.head:
                    yield one.head, other.head

    return read.links(pairs())


RULE = AttentionRule("earlier mentions of the same entity", LANGUAGE, _antecedents)


def rules(scope: Any) -> list[AttentionRule]:
    """The rule, which has no trigger where no mention is annotated."""
    return [RULE]
