"""The rules behind the labels of this question: from frame elements to the evoking word."""

from collections.abc import Iterator

from headscope.claims.attention_rule import LANGUAGE, AttentionRule, Rows, RuleInput


def _evoking(read: RuleInput, *, back: bool) -> Rows:
    def pairs() -> Iterator[tuple[int, int]]:
        for frame in read.frames:
            target = range(frame.first, frame.last + 1)
            for element in frame.elements:
                for word in range(element.first, element.last + 1):
                    yield from ((at, word) if back else (word, at) for at in target if element.core)

    return read.links(pairs())


RULES = (
    AttentionRule(
        "the word that evokes its frame", LANGUAGE, lambda read: _evoking(read, back=False)
    ),
    AttentionRule("the elements of its frame", LANGUAGE, lambda read: _evoking(read, back=True)),
)
