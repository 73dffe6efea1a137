"""For each head the stored input in which it does most clearly what its label says."""

from collections.abc import Sequence

import numpy as np

from headscope.claims.claim import Claim
from headscope.claims.head_attention import OFFSETS, map_entropy
from headscope.claims.head_labels import head_labels
from headscope.claims.reading import Reading
from headscope.claims.relation_names import FROM_DEPENDENT, arrow
from headscope.core.display import printable
from headscope.core.results import Floats
from headscope.core.stored_maps import StoredInput
from headscope.corpus.coref.mentions import PRONOUN, PRONOUNS

Look = tuple[int, int | None]  # number of the input, and the token that looks, if it is one
Score = tuple[bool, float]  # whether the right word is found, and how much of it there is


def clearest_inputs(run: Reading, kept: Sequence[StoredInput]) -> list[Look]:
    """One for every head, in order; nothing where no input was kept.

    By how much the head does in the input of what its strongest label says, or else the claim that
    comes closest to one. A claim about a relation: the weight between the two words of one pair, if
    possible of one where the head finds the right word. About coreference likewise: the weight that
    a mention, if possible a pronoun, gives to one of its entity before it; where the head finds
    none, what a pronoun, else any word, gives to a word before it. A sink: the weight on its
    tokens. Other claims about language, or none: the mean over tokens of the largest weight to
    another ordinary token.
    """
    if not kept:
        return []
    return [_best(kept, place, labels.main) for place, labels in head_labels(run.tree).items()]


def _best(kept: Sequence[StoredInput], place: tuple[int, int], claim: Claim | None) -> Look:
    maps = [one.attention[place].astype(np.float64) for one in kept]
    if claim is not None and claim.kind == "dependency":
        to_head = claim.name == arrow(printable(claim.about), FROM_DEPENDENT)
        pairs = [
            (score, -at, token)
            for at, (one, weights) in enumerate(zip(kept, maps, strict=True))
            for score, token in _pairs(one, weights, claim.about, to_head=to_head)
        ]
        if pairs:
            _, at, token = max(pairs)
            return -at, token
    if claim is not None and claim.kind == "coreference":
        pronouns = PRONOUNS if claim.about in ("all", PRONOUN) else frozenset[str]()
        links = [
            (link, -at) for at, one in enumerate(kept) for link in _back(one, maps[at], pronouns)
        ]
        if links:
            (*_, token), at = max(links)
            return -at, -token
    kind = "" if claim is None else claim.about if claim.kind == "sink" else claim.kind
    clear = [_clearness(one, weights, kind) for one, weights in zip(kept, maps, strict=True)]
    return int(np.argmax(clear)), None


def _back(
    kept: StoredInput, maps: Floats, pronouns: frozenset[str]
) -> list[tuple[bool, bool, float, int]]:
    """For every word but the first: whether it finds a mention of its entity, whether it is a
    pronoun, the weight that its first token gives to such a mention, else to any word before it,
    and minus the number of that token.
    """
    candidates = []
    starts = np.diff(kept.word, prepend=-1) != 0
    for token in np.flatnonzero(kept.ordinary & starts).tolist():
        before = kept.ordinary & ~kept.punctuation & (np.arange(len(maps)) < token)
        if before.any():
            alone = (kept.word == kept.word[token]).sum() == 1 or kept.word[token] < 0
            pronoun = bool(alone) and kept.tokens[token].lower() in pronouns
            mine = before & (kept.entity == kept.entity[token]) & (kept.entity[token] >= 0)
            to_mine = float(maps[token, mine].max(initial=0))
            right = to_mine > 0 and to_mine >= float(maps[token, before].max())
            weight = to_mine if right else float(maps[token, before].max())
            candidates.append((right, pronoun, weight, -token))
    return candidates


def _pairs(
    kept: StoredInput, maps: Floats, relation: str, *, to_head: bool
) -> list[tuple[Score, int]]:
    """The score and the first token of the word that looks, for every pair of a relation."""
    words = _between_words(kept, maps)
    scored = []
    for dependent, head, name in kept.gold:
        if name != relation or max(dependent, head) >= len(words):
            continue
        answers = words[dependent] if to_head else words[:, dependent]  # [word]
        if np.isfinite(answers[head]):
            right = bool(answers[head] >= np.nanmax(answers))
            source = dependent if to_head else head
            token = int(np.flatnonzero(kept.word == source)[0])
            scored.append(((right, float(answers[head])), token))
    return scored


def _between_words(kept: StoredInput, maps: Floats) -> Floats:
    """[word, word] sums over keys, means over queries; NaN to itself, and for absent words."""
    count = int(kept.word.max(initial=-1)) + 1
    member = (kept.word == np.arange(count)[:, None]).astype(np.float64)  # [word, token]
    size = member.sum(1)
    mean = member / np.where(size > 0, size, np.nan)[:, None]
    words: Floats = mean @ maps @ member.T  # [word, word]
    words[:, size == 0] = np.nan
    np.fill_diagonal(words, np.nan)
    return words


def _clearness(kept: StoredInput, maps: Floats, kind: str) -> float:
    """How much a head does of what a claim says, from 0 to 1; -1 where that is unknown."""
    queries = kept.ordinary if kept.ordinary.any() else np.ones(len(maps), bool)
    if kind in OFFSETS:
        step = OFFSETS[kind]
        rows = [i for i in np.flatnonzero(queries).tolist() if 0 <= i + step < len(maps)]
        return float(np.mean([maps[i, i + step] for i in rows])) if rows else -1.0
    if kind in ("broad", "narrow"):
        nats = map_entropy(maps, queries / queries.sum())
        entropy = float(nats / np.log(max(len(maps), 2)))
        return entropy if kind == "broad" else 1 - entropy
    goals = {
        "first": np.arange(len(maps)) == 0,
        "cls": kept.cls,
        "sep": kept.sep,
        "special": kept.special,
        "punctuation": kept.punctuation,
    }
    if kind in goals:
        keys = goals[kind]
        return float(maps[queries][:, keys].sum(1).mean()) if keys.any() else -1.0
    between = (maps * ~np.eye(len(maps), dtype=bool))[queries][:, queries]
    return float(between.max(1, initial=0).mean())
