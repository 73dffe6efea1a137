"""How far the weights of each head turn a word into a related one: its plural, its opposite.

The relation scores of MAPS (Elhelo and Geva 2025): the share of pairs (word, related word) of which
the related one is among the k tokens that M raises most, and among those that it lowers most.
M = x W_V W_O W_U, for two x, as models differ in what their heads read: W_E → first feed-forward,
but W_E in the first layer that attends; and W_E in all layers. Only rows of the pairs' words are
computed, and whole ones only where they can matter: a word below k of some tokens is not among the
k highest of all.

Beside each score stands the same of OTHERS related words of the relation in place of the right one,
each as often as any other. A head that always raises the same tokens does no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import xarray as xr

from headscope.core.accumulators import Bools, Float64, Ints, left_out, means_over
from headscope.core.display import printable
from headscope.core.intervals import (
    DIFFERENCE,
    Estimate,
    estimate,
    estimate_independent,
    even,
    surely_above,
)
from headscope.core.results import labelled, tabled
from headscope.core.wording import how_many
from headscope.errors import InputError
from headscope.experiments.circuits.made_inputs import WordPairs, ordinals, single_ids
from headscope.experiments.circuits.made_prompts import ANTONYMS, CAPITALS, NAMES, THINGS
from headscope.experiments.circuits.own_relations import Words
from headscope.experiments.circuits.relation_claims import (
    ABOVE,
    EMBEDDED,
    NULL,
    SCORES,
    VARIABLES,
)
from headscope.experiments.circuits.settings import FEWEST, CircuitSettings
from headscope.experiments.circuits.weight_maps import ROUNDING, SOME, HeadMatrices, WeightMaps
from headscope.model.model import Model

MOST = 40  # pairs of a relation
TOKENS = 10  # that a head raises, and lowers, most
OTHERS = 8  # related words that are not the right one, for each word
ROWS = 512  # words that are looked at together
PLURALS = (
    "man men, woman women, child children, foot feet, tooth teeth, mouse mice, knife knives, "
    "life lives, wife wives, leaf leaves, wolf wolves, city cities, country countries, "
    "story stories, family families, box boxes, church churches, bus buses, dog dogs, cat cats, "
    "house houses, car cars, tree trees, book books, king kings, bird birds, boy boys, girl girls, "
    "door doors, road roads, river rivers, hand hands, eye eyes, wall walls, star stars"
)
PASTS = (
    "go went, see saw, take took, give gave, come came, make made, find found, know knew, "
    "think thought, tell told, become became, leave left, feel felt, bring brought, begin began, "
    "keep kept, hold held, write wrote, stand stood, hear heard, mean meant, meet met, run ran, "
    "pay paid, sit sat, speak spoke, lead led, grow grew, lose lost, fall fell, send sent, "
    "build built, break broke, spend spent, win won, walk walked, ask asked, want wanted"
)
COMPARATIVES = (
    "big bigger, small smaller, tall taller, short shorter, long longer, high higher, low lower, "
    "old older, young younger, strong stronger, weak weaker, fast faster, slow slower, "
    "hard harder, soft softer, cold colder, warm warmer, rich richer, poor poorer, deep deeper, "
    "wide wider, great greater, light lighter, dark darker, clean cleaner, close closer, "
    "good better, bad worse, happy happier, easy easier, large larger, late later, new newer"
)
LANGUAGES = (
    "France French, Germany German, Italy Italian, Spain Spanish, Russia Russian, Japan Japanese, "
    "China Chinese, Greece Greek, Norway Norwegian, Poland Polish, Portugal Portuguese, "
    "Sweden Swedish, Denmark Danish, Finland Finnish, Hungary Hungarian, England English, "
    "Egypt Arabic, Iran Persian, Turkey Turkish, Ukraine Ukrainian, Thailand Thai, Korea Korean, "
    "Vietnam Vietnamese, Israel Hebrew, Netherlands Dutch, Romania Romanian, Bulgaria Bulgarian"
)


def _pairs(listed: str) -> list[tuple[str, str]]:
    return [(word, to) for word, to in (pair.split() for pair in listed.split(", "))]


WORDS: Words = {
    "capitalised form": [(word, word.capitalize()) for word in THINGS.split()],
    "plural": _pairs(PLURALS),
    "past tense": _pairs(PASTS),
    "comparative": _pairs(COMPARATIVES),
    "opposite": _pairs(ANTONYMS),
    "capital city": _pairs(CAPITALS),
    "language": _pairs(LANGUAGES),
    "same name": [(name, name) for name in NAMES.split()],
    "upper-case letter": [(chr(at + 32), chr(at)) for at in range(ord("A"), ord("Z") + 1)],
}
NEXT = "next in order"


def relations_of(model: Model, own: Words | None = None) -> dict[str, WordPairs]:
    """The pairs of each relation that the tokenizer has as single tokens: ours, MOST at most, or
    those of a user.

    Of several pairs with one word, each related word is right. A token of the word itself is not,
    but of names, whose related word is the word. So a tokenizer that knows no capitals has no pairs
    of them.
    """
    if own:
        return {name: _single_pairs(model, pairs, len(pairs)) for name, pairs in own.items()}
    made = {name: _single_pairs(model, pairs, MOST) for name, pairs in WORDS.items()}
    return made | {NEXT: ordinals(model)}


def refuse_few(model: Model, own: Words) -> None:
    """Raise InputError for words of a user of which no relation has FEWEST pairs."""
    if not own:
        return
    counts = {name: len(one.ids) for name, one in relations_of(model, own).items()}
    most = max(counts, key=lambda name: counts[name])
    if counts[most] < FEWEST:
        raise InputError(
            f"found {how_many(counts[most], 'pair')} of the relation {most!r} whose words are one "
            f"token each, and no more of another; wanted {FEWEST} or more of one relation"
        )


def _single_pairs(model: Model, pairs: Iterable[tuple[str, str]], most: int) -> WordPairs:
    kept = WordPairs([], [], [])
    places: dict[str, int] = {}
    for word, to in pairs:
        ids, right = single_ids(model, word), single_ids(model, to)
        if word != to:
            right = tuple(one for one in right if one not in ids)
        if not (ids and right):
            continue
        if word in places:  # each of several words is right
            kept.right[places[word]] += right
            kept.words[places[word]] += f", {to}"
        elif len(kept.ids) < most:
            places[word] = len(kept.ids)
            kept.ids.append(ids[0])
            kept.right.append(right)
            kept.words.append(f"{word} → {to}")
    return kept


def related_words(
    model: Model, weights: WeightMaps, settings: CircuitSettings, own: Words | None = None
) -> xr.Dataset:
    """Which heads raise and lower related words, see `relation_result`.

    own  pairs of a user, in place of WORDS
    """
    relations, among, maps = relations_of(model, own), settings.relations, list(weights.layers())
    hits = relation_hits(maps, weights, relations, among=among)
    for name, one in relation_hits(maps, weights, relations, among=among, fed=False).items():
        hits[name + EMBEDDED], relations[name + EMBEDDED] = one, relations[name]
    result = relation_result(hits, relations, among=among, replicates=settings.replicates)
    if not hits:
        return result
    words = sorted({one for name in hits for one in relations[name].ids})
    ids = most_tokens(maps, weights, words)  # [layer, head, end, rank]
    texts = [printable(model.tokenizer.decode([one])) if one >= 0 else "" for one in ids.flat]
    dims, about = VARIABLES["most_tokens"][0].split(), {"long_name": VARIABLES["most_tokens"][1]}
    shown = xr.Variable(dims, np.reshape(texts, ids.shape), about | {"tidy": 0})
    return result.assign(most_tokens=shown).assign_coords(end=list(SCORES.values()))


def relation_hits(
    maps: Sequence[HeadMatrices],
    weights: WeightMaps,
    relations: Mapping[str, WordPairs],
    *,
    among: int,
    fed: bool = True,
) -> dict[str, Bools]:
    """Whether each head raises, and lowers, the related word of each word, and OTHERS others.

    among    tokens at either end that count: k of MAPS; a token that ties with the next does not
    fed      whether all layers but the first read the word behind the first feed-forward
    returns  by relation of FEWEST pairs or more, [pair, related, layer, head, 2]: raised, lowered;
             the right one is the first
    """
    kept = {name: one for name, one in relations.items() if len(one.ids) >= FEWEST}
    if not kept:
        return {}
    words, speaks = [word for one in kept.values() for word in one.ids], weights.unembedding
    width = max(len(forms) for one in kept.values() for forms in one.right)
    related = torch.cat([right_and_others(one, width) for one in kept.values()])
    first = weights.embedding[words].double()
    second = weights.first_feed_forward(words).double() if fed else first
    size, step = ROUNDING * float(speaks.norm(dim=1).max()), max(SOME, 2 * among)
    some = speaks[:: max(1, len(speaks) // step)]  # looked at first, then `step` at a time
    hits = []
    for at, layer in enumerate(maps):
        values = (second if at else first) @ layer.value  # [head, word, dim]
        written = (values @ layer.output).float()  # [head, word, model]
        forms = torch.einsum("hpm,prfm->hprf", written, speaks[related])
        ends = torch.stack([forms.amax(-1), -forms.amin(-1)], -1)  # [head, word, related, 2]
        ends -= size * written.norm(dim=2)[..., None, None]  # what rounding leaves
        pairs_of = zip(values.float(), layer.output.float(), strict=True)
        own = ends > torch.stack([_limits(_highest(v @ (o @ some.T), among)) for v, o in pairs_of])
        left = own.flatten(2).any(2).nonzero()  # for others enough tokens lie above
        for start in range(0, len(left), ROWS):
            place = tuple(left[start : start + ROWS].T)
            own[place] = _beyond(ends[place], written[place], torch.split(speaks, step), among)
        hits.append(own.movedim(0, 2).numpy())  # [word, related, head, 2]
    counts = [len(one.ids) for one in kept.values()]
    by_relation = np.split(np.stack(hits, 2), np.cumsum(counts)[:-1])
    return dict(zip(kept, by_relation, strict=True))


def right_and_others(pairs: WordPairs, width: int) -> torch.Tensor:
    """[pair, 1 + OTHERS, width] ids of its related word, and of those of pairs that stand as far
    apart as they can; of fewer forms than `width` some again.
    """
    count = len(pairs.ids)
    forms = torch.from_numpy(pairs.forms(width))
    steps = torch.tensor([round(at * count / (OTHERS + 1)) for at in range(OTHERS + 1)])
    return forms[(torch.arange(count)[:, None] + steps) % count]


def _beyond(
    ends: torch.Tensor, written: torch.Tensor, parts: Sequence[torch.Tensor], among: int
) -> torch.Tensor:
    """[word, related, 2] whether an end is among the highest of a word's logits for all tokens.

    Parts of the vocabulary are read in turn; a word is left once its ends cannot be among them.

    parts  each [token, model]
    among  how many count as the highest
    """
    beyond, left = torch.zeros_like(ends, dtype=torch.bool), torch.arange(len(ends))
    highest: torch.Tensor | None = None
    for tokens in parts:
        highest = _highest(written[left] @ tokens.T, among, highest)
        above = ends[left] > _limits(highest)
        still = above.flatten(1).any(1)
        left, highest, above = left[still], highest[still], above[still]
    beyond[left] = above
    return beyond


def _highest(logits: torch.Tensor, among: int, before: torch.Tensor | None = None) -> torch.Tensor:
    """[word, 2, rank] the highest of [word, token] and minus the lowest, `among` and one more.

    before  those of other tokens, which are joined with them
    """
    every = torch.stack([logits, -logits], 1)  # [word, 2, token]
    if before is not None:
        every = torch.cat([before, every], 2)
    return every.topk(min(among + 1, every.shape[2])).values


def _limits(highest: torch.Tensor) -> torch.Tensor:
    """[word, 1, 2] what a logit must exceed to be among the highest; minus it, among the lowest."""
    return highest[:, None, :, -1].clamp_min(0)


def most_tokens(
    maps: Sequence[HeadMatrices], weights: WeightMaps, words: Sequence[int], *, count: int = TOKENS
) -> Ints:
    """[layer, head, 2, rank] ids of the tokens that each head raises, and lowers, most.

    By the mean of M over these words, see the module; −1 where only rounding is left.
    """
    speaks = weights.unembedding
    size = ROUNDING * float(speaks.norm(dim=1).max())
    first, second = weights.embedding[words].double(), weights.first_feed_forward([*words]).double()
    rows = []
    for at, layer in enumerate(maps):
        read = (second if at else first).mean(0)
        written = (read @ layer.value)[:, None] @ layer.output  # [head, 1, model]
        logits = written[:, 0].float() @ speaks.T  # [head, token]
        nothing = size * written.norm(dim=2).float()  # [head, 1]
        ends = [(sign * logits).topk(min(count, len(speaks))) for sign in (1, -1)]
        rows.append([torch.where(one.values > nothing, one.indices, -1) for one in ends])
    return np.stack([torch.stack(one, 1).numpy() for one in rows])


def relation_result(
    hits: Mapping[str, Bools],
    relations: Mapping[str, WordPairs],
    *,
    among: int,
    replicates: int,
) -> xr.Dataset:
    """The variables of VARIABLES with intervals over pairs; without any, which relations are short.

    hits  by relation, see `relation_hits`
    """
    short = [f"{name} ({len(one.ids)})" for name, one in relations.items() if name not in hits]
    about = {"among": among, "relations_left_out": "; ".join(short), "relation_fewest": FEWEST}
    if not hits:
        return xr.Dataset(attrs=about)
    parts = [_shares(hit, relations[name].words, replicates) for name, hit in hits.items()]
    tests = sum(score.value.size for score, *_ in parts)
    pairs = np.array([len(hit) for hit in hits.values()])
    values: dict[str, Any] = {"relation_pairs": pairs}
    for end, variable in enumerate(SCORES):
        values |= {
            variable: _stacked([score.last(end) for score, *_ in parts]),
            NULL[variable]: np.stack([null[..., end] for *_, null in parts], -1),
            ABOVE[variable]: np.stack(
                [surely_above(gain.last(end), tests) for _, gain, _ in parts], -1
            ),
        }
    shown = {
        name: replace(one, over="pairs", tidy=name in SCORES)
        for name, one in tabled(values, VARIABLES).items()
    }
    result = labelled(shown, coords={"relation": list(hits)}).assign_attrs(about)
    for array in result.data_vars.values():
        array.attrs["n"] = int(pairs.min())  # or more
    return result


def _shares(
    hits: Bools, words: Sequence[str], replicates: int
) -> tuple[Estimate, Estimate, Float64]:
    """[layer, head, 2] the score, score − null, and null, the mean over other related words."""
    right, others = hits[:, 0].astype(np.float64), hits[:, 1:].mean(1)  # [pair, layer, head, 2]
    kept = left_out(words, replicates=replicates)
    draws = means_over(kept, right - others)
    score = estimate_independent(means_over(kept, right), len(words))
    return score, estimate(draws, bounds=DIFFERENCE, sizes=even(draws)), others.mean(0)


def _stacked(parts: Sequence[Estimate]) -> Estimate:
    """[layer, head, relation] without draws."""
    ends = ([getattr(one, end) for one in parts] for end in ("value", "low", "high"))
    return Estimate(*(np.stack(one, -1) for one in ends))
