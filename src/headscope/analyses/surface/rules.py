"""The rules behind the labels of this question: neighbours, special tokens, stops, same tokens."""

from headscope.claims.attention_rule import POSITION, REST, TOKEN, AttentionRule, Rows, RuleInput


def _first(read: RuleInput) -> Rows:
    return read.even(read.offset[0] == 0)


def _special_itself(read: RuleInput) -> Rows:
    return read.even((read.offset == 0) & read.special[:, None])


def _same(read: RuleInput, side: int) -> Rows:
    same = (read.ids[:, None] == read.ids) & ~read.special
    if side:
        same &= read.offset * side > 0
    return read.even(same & (read.offset != 0))


def _segment(read: RuleInput, *, own: bool) -> Rows:
    word = ~read.special
    same = (read.segments[:, None] == read.segments) == own
    return read.even(same & word & word[:, None])


RULES = (
    AttentionRule("the token itself", POSITION, lambda read: read.even(read.offset == 0)),
    AttentionRule("the previous token", POSITION, lambda read: read.even(read.offset == -1)),
    AttentionRule("the next token", POSITION, lambda read: read.even(read.offset == 1)),
    AttentionRule("the first token", REST, _first),
    AttentionRule("the opening token", REST, lambda read: read.even(read.opening)),
    AttentionRule("the separators", REST, lambda read: read.even(read.closing)),
    AttentionRule("all special tokens", REST, lambda read: read.even(read.special)),
    AttentionRule("the token itself, by special tokens", REST, _special_itself),
    AttentionRule("full stops and commas", REST, lambda read: read.even(read.stops)),
    AttentionRule("the same token before", TOKEN, lambda read: _same(read, -1)),
    AttentionRule("the same token behind", TOKEN, lambda read: _same(read, 1)),
    AttentionRule("the same token elsewhere", TOKEN, lambda read: _same(read, 0)),
    AttentionRule("the own sentence", TOKEN, lambda read: _segment(read, own=True)),
    AttentionRule("the other sentence", TOKEN, lambda read: _segment(read, own=False)),
)
