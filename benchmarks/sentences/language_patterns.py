"""Sentences about language that can be recomputed: labels, cards, findings, rows of tables."""

from __future__ import annotations

import numpy as np

from . import relation_words
from .judging import number
from .language_numbers import DIRECTIONS, OFFSETS, Finder
from .pattern import HEAD, Match, Pattern, head_of
from .totals import Quantity
from .world import World, rank_of

MENTIONS = {
    "mentions": "all",
    "pronouns": "pronoun",
    "proper names": "proper",
    "common noun phrases": "nominal",
}
RULES = {"nearest mention": 0, "head match": 1, "rules": 2}


# --- language ---------------------------------------------------------------------------------


def _finder(w: World, m: Match) -> tuple[Finder, int]:
    relation, direction = relation_words.read(m["words"])
    if relation == "all":  # the row says which, where the words do not
        relation = m.get("relation", relation)
    return w.relations[relation], DIRECTIONS.index(direction)


def _baseline(w: World, m: Match) -> float:
    return float(_finder(w, m)[0].baselines.max())


def _is_best(w: World, m: Match) -> list[str]:
    finder, way = _finder(w, m)
    best = finder.accuracy.max()
    own = finder.accuracy[*head_of(m), way]
    return [] if own >= best else [f"is not the best head: {own:.4f} of {best:.4f}"]


def _found_by(w: World, m: Match) -> float:
    finder, way = _finder(w, m)
    return float(finder.accuracy[*head_of(m), way])


def _rank(w: World, m: Match) -> list[str]:
    finder, way = _finder(w, m)
    rank, of = rank_of(finder.accuracy[..., way], head_of(m)), w.layers * w.heads
    said = int(m["rank"]), int(m["of"])
    return [] if said == (rank, of) else [f"says {said[0]} of {said[1]}, is {rank} of {of}"]


def _mentions(w: World, m: Match) -> Finder:
    return w.antecedents[MENTIONS[m["what"]]]


def _is_best_at_mentions(w: World, m: Match) -> list[str]:
    accuracy = _mentions(w, m).accuracy[..., 0]
    own = accuracy[head_of(m)]
    wrong = [] if own >= accuracy.max() else [f"is not the best head: {own:.4f}"]
    count = _mentions(w, m).count
    if number(m["n"]) != count:
        wrong.append(f"says {m['n']} mentions, there are {count}")
    return wrong


def _largest(w: World, m: Match) -> Quantity:
    return w.kinds[f"largest to {m['kind']}"][head_of(m)]


LANGUAGE = (
    Pattern(  # what words beside find is not computed again
        "relation of a head",
        HEAD + r"(?P<words>[^,]+ → [^,]+), {share%} of {n=} words, fixed "
        r"offset {rule%}, words beside {beside%}$",
        {
            "share": _found_by,
            "n": lambda w, m: _finder(w, m)[0].count,
            "rule": _baseline,
        },
    ),
    Pattern(
        "relation",
        HEAD + r"(?P<words>[^,]+ → [^,]+), {held%} held out \({best%} where the head "
        r"was chosen\), baseline {rule%}$",
        {
            "held": lambda w, m: _finder(w, m)[0].held_out(),
            "best": _found_by,
            "rule": _baseline,
        },
        also=_is_best,
    ),
    Pattern(
        "relation on a card",
        HEAD + r"(?P<words>[^,]+ → [^,]+), {share%}(?: \({held%} held "
        r"out\))?, baseline {rule%}; (?P<rank>\d+) of (?P<of>\d+) heads$",
        {
            "share": _found_by,
            "held": lambda w, m: _finder(w, m)[0].held_out(),
            "rule": _baseline,
        },
        also=_rank,
    ),
    Pattern(
        "coreference",
        HEAD + r"coreference: antecedent found for {held%} of (?P<n>[\d,]+) "
        rf"(?P<what>{'|'.join(MENTIONS)}) held out \({{best%}} where the head was chosen\), "
        rf"(?P<rule>{'|'.join(RULES)}) {{rival%}}$",
        {
            "held": lambda w, m: _mentions(w, m).held_out(),
            "best": lambda w, m: float(_mentions(w, m).accuracy[(*head_of(m), 0)]),
            "rival": lambda w, m: float(_mentions(w, m).baselines[RULES[m["rule"]]]),
        },
        also=_is_best_at_mentions,
    ),
    Pattern(  # what is ordinary without knowledge is not computed again
        "coreference of a head",
        HEAD + r"coreference: antecedent found for {share%} of {n=} "
        rf"(?P<what>{'|'.join(MENTIONS)}), (?P<rule>{'|'.join(RULES)}) {{rival%}}, nearest words "
        "that are no mentions {beside%}$",
        {
            "share": lambda w, m: float(_mentions(w, m).accuracy[(*head_of(m), 0)]),
            "n": lambda w, m: _mentions(w, m).count,
            "rival": lambda w, m: float(_mentions(w, m).baselines[RULES[m["rule"]]]),
        },
    ),
    Pattern(
        "kind of words, all",
        HEAD + r"looks for (?P<kind>\w+): they get {share%} of the attention "
        "of all tokens, {usual%} without knowledge of them$",
        {"share": lambda w, m: w.kinds[f"to all {m['kind']}"][head_of(m)]},
    ),
    Pattern(
        "pair, all",
        HEAD + r"attends from (?P<pair>\w+ to \w+): {share%} of the attention of the "
        "one goes to the other, {usual%} without knowledge of them$",
        {"share": lambda w, m: w.kinds[f"mean, {m['pair']}"][head_of(m)]},
    ),
    Pattern(
        "kind of words",
        HEAD + r"looks for (?P<kind>\w+): the most attended takes {share%} of the "
        "attention of all tokens, where {usual%} is ordinary$",
        {
            "share": _largest,
            "usual": lambda w, m: float(w.kinds[f"largest to {m['kind']}"].value.mean()),
        },
    ),
    Pattern(  # what is said is what they give, not the largest weight of a pair
        "pair",
        HEAD + r"attends from (?P<pair>\w+ to \w+), {share%}, where {usual%} is ordinary$",
        {
            "share": lambda w, m: w.kinds[f"mean, {m['pair']}"][head_of(m)],
            "usual": lambda w, m: float(w.kinds[f"mean, {m['pair']}"].value.mean()),
        },
    ),
    Pattern(
        "relations found",
        r"^Of {all=} syntactic relations, {found=} (?:are|is) surely found "
        "by a head more often than by the best fixed offset",
        {
            "all": lambda w, m: len(_frequent(w)),
        },
        also=lambda w, m: (
            [f"says {m['found']} relations, held out {len(_beaten(w))} lie above their offset"]
            if number(m["found"]) > len(_beaten(w))
            else []
        ),
    ),
    Pattern(
        "coreference, best",
        r"^Held out, the best head finds {held%}; the best rule {rule%}\.?$",
        {
            "held": lambda w, m: w.antecedents["all"].held_out(),
            "rule": lambda w, m: float(w.antecedents["all"].baselines.max()),
        },
    ),
)


def _frequent(w: World) -> list[str]:
    no = ("all", "all but root and punctuation")
    return [
        name
        for name, one in w.relations.items()
        if one.count >= 25 and name not in no and name.partition(":")[0] not in ("root", "punct")
    ]


def _beaten(w: World) -> list[str]:
    found = w.relations
    return [n for n in _frequent(w) if found[n].held_out() > found[n].baselines.max()]


# --- rows of tables, read as sentences --------------------------------------------------------


def _row_best(w: World, m: Match) -> list[str]:
    wrong, (finder, _) = [], _finder(w, m)
    by = np.array(OFFSETS)[finder.baselines == finder.baselines.max()]
    if int(number(m["by"])) not in by:
        wrong.append(f"says the best offset is {m['by']}, it is {by.tolist()}")
    return [*wrong, *_is_best(w, m)]


P = r" \| "
ROWS = (
    Pattern(
        "row of a relation",
        r"^(?P<relation>all but root and punctuation|[a-z]+(?::[a-z]+)?) "
        rf"(?P<words>(?!but )[^|]+ → [^|]+?){P}{{n=}}{P}"
        rf"(?P<head>L\d+·H\d+){P}{{best#}}{P}{{rule#}}{P}(?P<by>[+−]\d+){P}{{held#}}{P}.*?"
        r"{ahead#}$",
        {
            "n": lambda w, m: _finder(w, m)[0].count,
            "best": lambda w, m: 100 * _found_by(w, m),
            "rule": lambda w, m: 100 * _baseline(w, m),
            "held": lambda w, m: 100 * _finder(w, m)[0].held_out(),
            "ahead": lambda w, m: 100 * (_finder(w, m)[0].held_out() - _baseline(w, m)),
        },
        also=_row_best,
    ),
    Pattern(
        "row of a kind",
        rf"^(?P<kind>nouns|verbs|pronouns|subjects|objects|negation){P}{{n=}}{P}"
        rf"(?P<head>L\d+·H\d+){P}{{share#}}{P}{{mean#}}$",
        {
            "n": lambda w, m: float(w.kinds[f"inputs with {m['kind']}"].above.sum()),
            "share": lambda w, m: 100 * float(_of_row(w, m)[0]),
            "mean": lambda w, m: 100 * float(_of_row(w, m)[1]),
        },
    ),
)


def _of_row(w: World, m: Match) -> tuple[float, float]:
    """The same kinds stand in two parts of a table: from all tokens, and from [CLS] at the end."""
    layer, head = head_of(m)
    every = w.kinds[f"largest to {m['kind']}"].value
    last = w.kinds[f"cls to {m['kind']}"].value
    if abs(100 * every[layer, head] - number(m["share"])) < 0.06 or layer + 1 < w.layers:
        return every[layer, head], every.mean()
    return last[head], last.mean()


PATTERNS = (*LANGUAGE, *ROWS)
