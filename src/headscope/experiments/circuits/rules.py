"""The rules behind the labels of this question: what came after the same token before."""

from headscope.claims.attention_rule import TOKEN, AttentionRule, Bools, Rows, RuleInput


def _after_same(read: RuleInput, *, latest: bool) -> Rows:
    word = ~read.special
    same = (read.ids[:, None] == read.ids) & (read.offset < 0) & word & word[:, None]
    after = read.even(_shifted(same))
    if not latest:
        return after
    far = (after > 0) * (1.0 + read.offset - read.offset.min())
    return read.even((far == far.max(-1, keepdims=True)) & (after > 0))


def _shifted(keys: Bools) -> Bools:
    moved = keys.copy()
    moved[:, 1:], moved[:, 0] = keys[:, :-1], False
    return moved


RULES = (
    AttentionRule(
        "the token after the same one before", TOKEN, lambda read: _after_same(read, latest=False)
    ),
    AttentionRule(
        "the token after the latest same one", TOKEN, lambda read: _after_same(read, latest=True)
    ),
)
