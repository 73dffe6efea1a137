"""The rules behind the labels of this question: every relation, in both directions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from headscope.claims.attention_rule import LANGUAGE, AttentionRule, Rows, RuleInput
from headscope.claims.relation_names import FROM_DEPENDENT, NO_SYNTAX, arrow

MOST = 24  # ours: relations, the most frequent ones
_TO_DEPENDENT = "head_to_dependent"


def _links(relation: str, direction: str, read: RuleInput) -> Rows:
    def pairs() -> Iterator[tuple[int, int]]:
        for at, word in enumerate(read.words):
            if word.head >= 0 and relation in ("", word.relation):
                yield (at, word.head) if direction == FROM_DEPENDENT else (word.head, at)

    return read.links(pairs())


def rules(scope: Any) -> list[AttentionRule]:
    """The rules for the relations of a run's trees; none without trees."""
    names = [name for name in scope.relations if name.partition(":")[0] not in NO_SYNTAX][:MOST]
    if not names:
        return []
    made = [
        AttentionRule("the syntactic head", LANGUAGE, partial(_links, "", FROM_DEPENDENT)),
        AttentionRule("the dependents", LANGUAGE, partial(_links, "", _TO_DEPENDENT)),
    ]
    return made + [
        AttentionRule(arrow(name, way), LANGUAGE, partial(_links, name, way))
        for name in names
        for way in (FROM_DEPENDENT, _TO_DEPENDENT)
    ]
