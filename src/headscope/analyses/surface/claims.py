"""Claims about where heads look: neighbours, kinds of tokens, sentences."""

import numpy as np

from headscope.claims.claim import Claim
from headscope.claims.head_attention import (
    OFFSETS,
    POSITION,
    PREVIOUS,
    SELF,
    SHARED_PART,
    SPECIAL,
    SPECIALS,
    TARGETS,
    WORD_KINDS,
    attention_documents,
    attention_to,
    has_cls,
    norm_share,
    ordinary_attention,
    special_name,
    uniform_share,
)
from headscope.claims.plan import LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import OURS
from headscope.core.results import at, surely
from headscope.core.wording import percent

KINDS = (*(kind for kind in TARGETS if kind not in SPECIALS), *SPECIALS)
PAPERS = {"cls": "[CLS]", "sep": "[SEP]"}
REST = (SELF, PREVIOUS, "punctuation")  # where what the first token leaves may go
LEAST_REST = 0.1  # ours: of the attention; of less nothing is said
ASKS = {"first": "the tokenizer has no [CLS]"}
EVEN = 0.9  # ours, as for broad: of the entropy of even attention
ABOVE = 0.25  # ours: of what uniform attention leaves
WORDS = {  # kind of words -> what a label calls it, the goal in a sentence, the threshold
    "own_segment": ("own sentence, evenly", "words of the own sentence", SPECIAL),
    "other_segment": ("other sentence", "words of the other sentence", POSITION),
    "same_token": ("same word elsewhere", "the same word elsewhere", 0.25),
}
LOOKS = {  # what a label says -> the rule that predicts the same
    "self": "the token itself",
    "previous": "the previous token",
    "next": "the next token",
    "first": "the first token",
    "cls": "the opening token",
    "sep": "the separators",
    "punctuation": "full stops and commas",
    "own_segment": "the own sentence",
    "other_segment": "the other sentence",
    "same_token": "the same token elsewhere",
}


def _of_the_rest(claim: Claim) -> str:
    """Where the rest goes, by the name of the claim."""
    return next(LOOKS[one] for one in REST if claim.name == _rest_name(one))


def _rest_name(target: str) -> str:
    return f"of the rest, {TARGETS[target].name}"


RULES = {
    kind: LabelRule(
        target.name,
        number=target.number or f"attention to {target.goal}",
        least=target.least,
        source=target.source,
        asks=ASKS.get(kind, ""),
        unless=("sink",) if kind in SPECIALS else (),
        predicts=LOOKS[kind],
    )
    for kind, target in TARGETS.items()
}
RULES["special"] = LabelRule(
    "[CLS] and [SEP]",
    number="attention to [CLS] and [SEP] together",
    least=SPECIAL,
    source=f"{OURS}, as for each",
    asks=f"either has {SHARED_PART:g} of it",
    unless=("cls", "sep", "sink"),
    predicts="all special tokens",
)
RULES["rest"] = LabelRule(
    "where the rest goes",
    number="of what the first token leaves, attention to the token itself, the previous token or "
    "punctuation",
    least=POSITION,
    source=OURS,
    variable="rest_attention",
    predicts=_of_the_rest,
    asks=f"the first token has more than {POSITION:g} of the attention, and leaves {LEAST_REST:g} "
    "or more",
)
RULES |= {
    kind: LabelRule(
        title,
        number=f"attention of words to {goal}",
        least=least,
        source=OURS,
        asks=f"lower end above uniform attention by {ABOVE:g} of what that leaves"
        + f"; evenness above {EVEN:g}" * (kind == "own_segment"),
        variable="word_attention",
        predicts=LOOKS[kind],
    )
    for kind, (title, goal, least) in WORDS.items()
}


def claims(run: Reading) -> list[Claim]:
    """Heads that give a target clearly more than the mean head, or than uniform attention does."""
    targets = [claim for kind in KINDS for claim in _to_target(run, kind)]
    if "rest_attention" in run.data:
        targets += [claim for target in REST for claim in _of_rest(run, target)]
    return [*targets, *(claim for kind in WORD_KINDS for claim in _to_words(run, kind))]


def _to_target(run: Reading, kind: str) -> list[Claim]:
    tree = run.tree
    share, part = attention_to(tree, kind), norm_share(tree, kind) if kind == "first" else None
    if share is None or (kind == "first" and has_cls(tree)) or not np.isfinite(share.value).any():
        return []
    reference = ordinary_attention(tree, kind)
    if kind in OFFSETS or kind == "first":
        reference = max(reference, uniform_share(tree))
    if kind in SPECIALS:
        name, goal = special_name(tree, kind, otherwise=PAPERS), special_name(tree, kind)
    else:
        name, goal = TARGETS[kind].name, TARGETS[kind].goal

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        sentence = f"attends to {goal}, {words}"
        if float(share.value[layer, head]) <= POSITION:
            usual = percent(reference)
            sentence = f"gives {goal} {words} of its attention, where {usual} is ordinary"
        if part is not None and np.isfinite(part.value[layer, head]):  # does it gather anything?
            of_norm = percent(*at(part, layer, head))
            return (
                f"{name} {words}, {of_norm} of the norm",
                f"{sentence}, which adds {of_norm} of the norm",
            )
        return f"{name} {words}", sentence

    return run.claims(
        share,
        reference,
        RULES[kind],
        say,
        kind=kind,
        name=name,
        n=attention_documents(tree),
    )


def _of_rest(run: Reading, target: str) -> list[Claim]:
    """Where heads that rest on the first token look with what is left."""
    first = attention_to(run.tree, "first")
    assert first is not None
    rests = (surely(first) > POSITION) & (first.value <= 1 - LEAST_REST)
    share = run("rest_attention", rest_target=target)
    if not np.isfinite(share.value).any():  # inputs of one token leave nothing
        return []
    reference = max(float(np.nanmean(share.value)), uniform_share(run.tree))
    name, goal = _rest_name(target), TARGETS[target].goal

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        return f"{name} {words}", f"gives {goal} {words} of what the first token leaves"

    return run.claims(
        share.map(lambda part: np.where(rests, part, np.nan)),
        reference,
        RULES["rest"],
        say,
        kind="rest",
        name=name,
        n=run.documents("rest_attention"),
    )


def _to_words(run: Reading, kind: str) -> list[Claim]:
    if not run.has("word_attention", word_kind=kind):  # a run of an older version has none
        return []
    share = run("word_attention", word_kind=kind)
    uniform = run("uniform_words", word_kind=kind).value[:, None]  # [layer, 1]
    more = surely(share) > uniform + ABOVE * (1 - uniform)
    even = run("own_evenness")
    if kind == "own_segment":
        more &= even.value > EVEN
    chosen = share.map(lambda part: np.where(more, part, np.nan))
    name, goal, _ = WORDS[kind]

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        usual = percent(float(uniform[layer, 0]))
        sentence = f"attends from words to {goal}, {words}, where {usual} is uniform"
        if kind == "own_segment":
            sentence += f"; its entropy there is {percent(*at(even, layer, head))} of an even one"
        return f"{name} {words}", sentence

    return run.claims(
        chosen,
        max(float(np.nanmean(share.value)), float(np.nanmax(uniform))),
        RULES[kind],
        say,
        kind=kind,
        name=name,
        n=run.documents("word_attention"),
    )
