"""The rules behind the labels of this question: every relation, in both directions."""

from functools import partial
from typing import Any

from headscope.claims.attention_rule import LANGUAGE, AttentionRule, Rows, RuleInput
from headscope.claims.relation_names import FROM_DEPENDENT, NO_SYNTAX, arrow

MOST = 24  # ours: relations, the most frequent ones
_TO_DEPENDENT = "head_to_dependent"


def _heads(read: RuleInput) -> dict[str, list[tuple[int, int]]]:
    """Relation -> (dependent, head); "" has all."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    for at, word in enumerate(read.words):
        if word.head >= 0:
            for name in ("", word.relation):
                pairs.setdefault(name, []).append((at, word.head))
    return pairs


def _links(relation: str, direction: str, read: RuleInput) -> Rows:
    pairs = read.once(_heads).get(relation, [])
    if direction != FROM_DEPENDENT:
        pairs = [(head, dependent) for dependent, head in pairs]
    return read.links(pairs)


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
