"""The rules behind the labels of this question: earlier mentions of the same entity."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from headscope.claims.attention_rule import LANGUAGE, AttentionRule, Rows, RuleInput

EARLIER = "earlier mentions of the same entity"
OF_KINDS = {  # kind of mention -> the rule of such mentions alone
    "pronoun": f"{EARLIER}, by pronouns",
    "proper": f"{EARLIER}, by names",
    "nominal": f"{EARLIER}, by noun phrases",
}


def _antecedents(kind: str, read: RuleInput) -> Rows:
    def pairs() -> Iterator[tuple[int, int]]:
        for one in read.mentions:
            for other in read.mentions:
                same = other.entity == one.entity and other.head < one.head
                if same and kind in ("", one.kind):
                    yield one.head, other.head

    return read.links(pairs())


RULES = (
    AttentionRule(EARLIER, LANGUAGE, partial(_antecedents, "")),
    *(
        AttentionRule(name, LANGUAGE, partial(_antecedents, kind))
        for kind, name in OF_KINDS.items()
    ),
)


def rules(scope: Any) -> list[AttentionRule]:
    """The rules, which have no trigger where no mention is annotated."""
    return list(RULES)
