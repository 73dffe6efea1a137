"""The sentences that can be recomputed: how each is written, and what its numbers are.

A row is a name, how the sentence is written (see `judging.compiled`; a head stands before it where
it is about one), and for each number a function of the world and the match. A row that is true
only if more holds has a function `also`, which gives what is wrong. Wording changes here, and
nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from . import relation_words
from .judging import compiled, number
from .language_numbers import DIRECTIONS, OFFSETS, Finder
from .totals import Quantity
from .world import World, places, rank_of

Match = Mapping[str, str]
True_ = Quantity | float
GOALS = {
    "the token itself": "to self", "the previous token": "to previous", "itself": "to self",
    "the next token": "to next", "the first token": "to first", "[CLS]": "to cls",
    "[SEP]": "to sep", "full stops and commas": "to punctuation", "punctuation": "to punctuation",
    "previous token": "to previous", "next token": "to next", "first token": "to first",
}  # fmt: skip
SPECIALS = {"[CLS]": "cls", "[SEP]": "sep", "the first token": "first", "full stops and commas":
            "punctuation", "some other token": "other"}  # fmt: skip
WORDS = "the same word elsewhere"
MENTIONS = {"mentions": "all", "pronouns": "pronoun", "proper names": "proper",
            "common noun phrases": "nominal"}  # fmt: skip
RULES = {"nearest mention": 0, "head match": 1, "rules": 2}
G = "|".join(map(re.escape, GOALS))
S = "|".join(map(re.escape, SPECIALS))


@dataclass(frozen=True)
class Pattern:
    """A kind of sentence.

    numbers   group of the template -> what it really is
    unbounded of the groups, which may leave 0 to 1
    also      what else must be so; gives what is wrong
    within    what the whole text must match, where the template is a part of it
    """

    name: str
    template: str
    numbers: Mapping[str, Callable[[World, Match], True_]]
    also: Callable[[World, Match], list[str]] | None = None
    within: str = ""
    unbounded: tuple[str, ...] = field(default=())

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return compiled(self.template)

    def is_percent(self, group: str) -> bool:
        return f"{{{group}%}}" in self.template


def _at(m: Match) -> tuple[int, int]:
    return places(m["head"])


def _share(w: World, m: Match) -> Quantity:
    return w.of(GOALS[m["goal"]], _at(m))


def _ordinary_share(w: World, m: Match) -> float:
    name = GOALS[m["goal"]]
    position = name in ("to self", "to previous", "to next", "to first")
    return w.ordinary(name) if position else w.of_mean_head(name)


def _norm(w: World, m: Match) -> Quantity:
    return w.of(f"norm of {SPECIALS[m['goal']]}", _at(m))


def _norm_share(w: World, m: Match) -> Quantity:
    return w.of(f"norm share of {SPECIALS[m['goal']]}", _at(m))


HEAD = r"^(?P<head>L\d+·H\d+):? "
LABELS = (
    Pattern("target", HEAD + rf"attends to (?P<goal>{G}), {{share%}}$", {"share": _share}),
    Pattern(
        "target and norm",
        HEAD + rf"attends to (?P<goal>{G}), {{share%}}, which adds {{norm%}} of the norm$",
        {"share": _share, "norm": _norm_share},
    ),
    Pattern(
        "ordinary target",
        HEAD + rf"gives (?P<goal>{G}) {{share%}} of its attention, where {{usual%}} is ordinary"
        r"(?:, which adds {norm%} of the norm)?$",
        {"share": _share, "usual": _ordinary_share, "norm": _norm_share},
    ),
    Pattern(
        "of the rest", HEAD + rf"gives (?P<goal>{G}) {{share%}} of what the first token leaves$",
        {"share": lambda w, m: w.of(f"of the rest {GOALS[m['goal']]}", _at(m))},
    ),
    Pattern(
        "same word", HEAD + r"attends from words to the same word elsewhere, {share%}, where "
        "{usual%} is uniform$",
        {
            "share": lambda w, m: w.of("of words to the same word", _at(m)),
            "usual": lambda w, m: w.totals["of words to the same word, uniform"],
        },
    ),
    Pattern(
        "sink", HEAD + rf"rests {{share%}} of its attention on (?P<goal>{S}), yet what (?P=goal) "
        "adds has norm {norm#}(?:, {part%} of all)?, against {others#} from other tokens$",
        {
            "share": lambda w, m: w.of(f"to {SPECIALS[m['goal']]}", _at(m)), "norm": _norm,
            "part": _norm_share, "others": lambda w, m: w.of("norm of other", _at(m)),
        },
        unbounded=("norm", "others"),
    ),
    Pattern(
        "sink in inputs", HEAD + rf"rests on (?P<goal>{S}) in {{inputs%}} of inputs: more than 0.3 "
        "of the attention(?:, with {part%} of the norm)?$",
        {
            "inputs": lambda w, m: w.of(f"sink on {SPECIALS[m['goal']]}", _at(m)),
            "part": _norm_share,
        },
    ),
    Pattern(
        "broad", HEAD + r"attends broadly: entropy {nats#} of {uniform#} nats$",
        {
            "nats": lambda w, m: w.of("entropy", _at(m)),
            "uniform": lambda w, m: float(w.totals["uniform entropy"].value),
        },
        unbounded=("nats",),
    ),
    Pattern(
        "few tokens", HEAD + r"focuses on few tokens without one main target: entropy {nats#} of "
        "{uniform#} nats$",
        {
            "nats": lambda w, m: w.of("entropy", _at(m)),
            "uniform": lambda w, m: float(w.totals["uniform entropy"].value),
        },
        also=lambda w, m: [
            f"gives {goal} more than half" for goal in GOALS.values()
            if goal in w.totals and w.of(goal, _at(m)).value > 0.5
        ],
        unbounded=("nats",),
    ),
    Pattern(
        "nearby", HEAD + r"gives {share%} of its attention within 3 tokens$",
        {"share": lambda w, m: w.of("nearby", _at(m))},
    ),
    Pattern(
        "first and latest", HEAD + r"gives the first 4 and latest 64 tokens {share%}, where "
        "{usual%} is uniform$",
        {
            "share": lambda w, m: w.of("streaming", _at(m)),
            "usual": lambda w, m: float(w.totals["uniform streaming"].value),
        },
    ),
)  # fmt: skip


# --- language ---------------------------------------------------------------------------------


def _finder(w: World, m: Match) -> tuple[Finder, int]:
    relation, direction = relation_words.read(m["words"])
    return w.relations[relation], DIRECTIONS.index(direction)


def _baseline(w: World, m: Match) -> float:
    return float(_finder(w, m)[0].baselines.max())


def _is_best(w: World, m: Match) -> list[str]:
    finder, way = _finder(w, m)
    best = finder.accuracy.max()
    own = finder.accuracy[*_at(m), way]
    return [] if own >= best else [f"is not the best head: {own:.4f} of {best:.4f}"]


def _found_by(w: World, m: Match) -> float:
    finder, way = _finder(w, m)
    return float(finder.accuracy[*_at(m), way])


def _rank(w: World, m: Match) -> list[str]:
    finder, way = _finder(w, m)
    rank, of = rank_of(finder.accuracy[..., way], _at(m)), w.layers * w.heads
    said = int(m["rank"]), int(m["of"])
    return [] if said == (rank, of) else [f"says {said[0]} of {said[1]}, is {rank} of {of}"]


def _mentions(w: World, m: Match) -> Finder:
    return w.antecedents[MENTIONS[m["what"]]]


def _is_best_at_mentions(w: World, m: Match) -> list[str]:
    accuracy = _mentions(w, m).accuracy[..., 0]
    own = accuracy[_at(m)]
    wrong = [] if own >= accuracy.max() else [f"is not the best head: {own:.4f}"]
    count = _mentions(w, m).count
    if number(m["n"]) != count:
        wrong.append(f"says {m['n']} mentions, there are {count}")
    return wrong


def _largest(w: World, m: Match) -> Quantity:
    return w.kinds[f"largest to {m['kind']}"][_at(m)]


LANGUAGE = (
    Pattern(  # what words beside find is not computed again
        "relation of a head", HEAD + r"(?P<words>[^,]+ → [^,]+), {share%} of {n=} words, fixed "
        r"offset {rule%}, words beside {beside%}$",
        {
            "share": _found_by, "n": lambda w, m: _finder(w, m)[0].count, "rule": _baseline,
        },
    ),
    Pattern(
        "relation", HEAD + r"(?P<words>[^,]+ → [^,]+), {held%} held out \({best%} where the head "
        r"was chosen\), baseline {rule%}$",
        {
            "held": lambda w, m: _finder(w, m)[0].held_out(), "best": _found_by,
            "rule": _baseline,
        },
        also=_is_best,
    ),
    Pattern(
        "relation on a card", HEAD + r"(?P<words>[^,]+ → [^,]+), {share%}(?: \({held%} held "
        r"out\))?, baseline {rule%}; (?P<rank>\d+) of (?P<of>\d+) heads$",
        {
            "share": _found_by, "held": lambda w, m: _finder(w, m)[0].held_out(),
            "rule": _baseline,
        },
        also=_rank,
    ),
    Pattern(
        "coreference", HEAD + r"coreference: antecedent found for {held%} of (?P<n>[\d,]+) "
        rf"(?P<what>{'|'.join(MENTIONS)}) held out \({{best%}} where the head was chosen\), "
        rf"(?P<rule>{'|'.join(RULES)}) {{rival%}}$",
        {
            "held": lambda w, m: _mentions(w, m).held_out(),
            "best": lambda w, m: float(_mentions(w, m).accuracy[(*_at(m), 0)]),
            "rival": lambda w, m: float(_mentions(w, m).baselines[RULES[m["rule"]]]),
        },
        also=_is_best_at_mentions,
    ),
    Pattern(  # what is ordinary without knowledge is not computed again
        "coreference of a head", HEAD + r"coreference: antecedent found for {share%} of {n=} "
        rf"(?P<what>{'|'.join(MENTIONS)}), (?P<rule>{'|'.join(RULES)}) {{rival%}}, nearest words "
        "that are no mentions {beside%}$",
        {
            "share": lambda w, m: float(_mentions(w, m).accuracy[(*_at(m), 0)]),
            "n": lambda w, m: _mentions(w, m).count,
            "rival": lambda w, m: float(_mentions(w, m).baselines[RULES[m["rule"]]]),
        },
    ),
    Pattern(
        "kind of words, all", HEAD + r"looks for (?P<kind>\w+): they get {share%} of the attention "
        "of all tokens, {usual%} without knowledge of them$",
        {"share": lambda w, m: w.kinds[f"to all {m['kind']}"][_at(m)]},
    ),
    Pattern(
        "pair, all", HEAD + r"attends from (?P<pair>\w+ to \w+): {share%} of the attention of the "
        "one goes to the other, {usual%} without knowledge of them$",
        {"share": lambda w, m: w.kinds[f"mean, {m['pair']}"][_at(m)]},
    ),
    Pattern(
        "kind of words", HEAD + r"looks for (?P<kind>\w+): the most attended takes {share%} of the "
        "attention of all tokens, where {usual%} is ordinary$",
        {
            "share": _largest,
            "usual": lambda w, m: float(w.kinds[f"largest to {m['kind']}"].value.mean()),
        },
    ),
    Pattern(  # what is said is what they give, not the largest weight of a pair
        "pair", HEAD + r"attends from (?P<pair>\w+ to \w+), {share%}, where {usual%} is ordinary$",
        {
            "share": lambda w, m: w.kinds[f"mean, {m['pair']}"][_at(m)],
            "usual": lambda w, m: float(w.kinds[f"mean, {m['pair']}"].value.mean()),
        },
    ),
    Pattern(
        "relations found", r"^Of {all=} syntactic relations, {found=} (?:are|is) found by a head "
        "more often than by the best fixed offset",
        {
            "all": lambda w, m: len(_frequent(w)),
        },
        also=lambda w, m: (
            [f"says {m['found']} relations, held out {len(_beaten(w))} lie above their offset"]
            if number(m["found"]) > len(_beaten(w)) else []
        ),
    ),
    Pattern(
        "coreference, best", r"^Held out, the best head finds {held%}; the best rule {rule%}\.?$",
        {
            "held": lambda w, m: w.antecedents["all"].held_out(),
            "rule": lambda w, m: float(w.antecedents["all"].baselines.max()),
        },
    ),
)  # fmt: skip


def _frequent(w: World) -> list[str]:
    no = ("all", "all but root and punctuation")
    return [
        name for name, one in w.relations.items()
        if one.count >= 25 and name not in no and name.partition(":")[0] not in ("root", "punct")
    ]  # fmt: skip


def _beaten(w: World) -> list[str]:
    found = w.relations
    return [n for n in _frequent(w) if found[n].held_out() > found[n].baselines.max()]


# --- the model as a whole ---------------------------------------------------------------------


def _neither(w: World, m: Match) -> float:
    return float(np.nan)


OF_MODEL = (
    Pattern(
        "inputs", r"{documents=} documents, {tokens=} tokens",
        {
            "documents": lambda w, m: len({one.document for one in w.inputs}),
            "tokens": lambda w, m: sum(map(len, w.inputs)),
        },
    ),
    Pattern(
        "mean head, target", rf"^The mean head gives (?P<goal>{G}) {{share%}} of its attention\.$",
        {"share": lambda w, m: w.of_mean_head(GOALS[m["goal"]])},
    ),
    Pattern(
        "mean head, entropy", r"^The entropy of a mean head is {nats#} of {uniform#} nats\.$",
        {
            "nats": lambda w, m: w.of_mean_head("entropy"),
            "uniform": lambda w, m: float(w.totals["uniform entropy"].value),
        },
    ),
    Pattern(
        "mean head, distance", r"^Half of a mean head’s attention stays within {half#} tokens; its "
        r"mean distance is {mean#}\.$",
        {
            "half": lambda w, m: w.of_mean_head("reach of 0.5"),
            "mean": lambda w, m: w.of_mean_head("mean distance"),
        },
    ),
    Pattern(
        "uniform distance", r"uniform attention: {mean#} tokens",
        {"mean": lambda w, m: float(w.totals["uniform distance"].value)},
    ),
    Pattern(
        "weight and norm", rf"^(?P<goal>{G}) draws {{share%}} of the attention and makes {{norm%}} "
        r"of the summed norms\.$",
        {
            "share": lambda w, m: w.of_mean_head(GOALS[m["goal"]]),
            "norm": lambda w, m: _summed_norms(w, GOALS[m["goal"]].removeprefix("to ")),
        },
    ),
    Pattern(
        "mean head, sink", rf"^A mean head has a sink on (?P<goal>{S}) in {{share%}} of inputs\.$",
        {"share": lambda w, m: w.of_mean_head(f"sink on {SPECIALS[m['goal']]}")},
    ),
    Pattern(
        "mentions", r"^Left out: {new=} mentions of what was not mentioned before",
        {"new": lambda w, m: _first_mentions(w)},
    ),
    Pattern(
        "mentions with an antecedent", r"n = {n=} mentions with an antecedent",
        {"n": lambda w, m: w.antecedents["all"].count},
    ),
    Pattern(
        "words", r"; n = {n=} words\.", {"n": lambda w, m: w.relations["all"].count}
    ),
)  # fmt: skip


def _summed_norms(w: World, kind: str) -> float:
    norms = {
        k: w.totals[f"norm of {k}"].value.mean()
        for k in ("cls", "sep", "first", "punctuation", "other")
        if f"norm of {k}" in w.totals
    }
    return float(norms[kind] / sum(norms.values()))


def _first_mentions(w: World) -> int:
    from tests.reference import coreference

    total = 0
    for one in w.documents:
        rows = [(m.entity, m.first, m.last, m.head, m.kind) for m in one.mentions]
        total += len(coreference.usable(rows, sorted({int(x) for x in one.word if x >= 0})))
    return total - w.antecedents["all"].count


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
        "row of a relation", r"^(?P<relation>all but root and punctuation|[a-z]+(?::[a-z]+)?) "
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
        "row of a kind", rf"^(?P<kind>nouns|verbs|pronouns|subjects|objects|negation){P}{{n=}}{P}"
        rf"(?P<head>L\d+·H\d+){P}{{share#}}{P}{{mean#}}$",
        {
            "n": lambda w, m: float(w.kinds[f"inputs with {m['kind']}"].above.sum()),
            "share": lambda w, m: 100 * float(_of_row(w, m)[0]),
            "mean": lambda w, m: 100 * float(_of_row(w, m)[1]),
        },
    ),
)  # fmt: skip


def _of_row(w: World, m: Match) -> tuple[float, float]:
    """The same kinds stand in two parts of a table: from all tokens, and from [CLS] at the end."""
    layer, head = _at(m)
    every = w.kinds[f"largest to {m['kind']}"].value
    last = w.kinds[f"cls to {m['kind']}"].value
    if abs(100 * every[layer, head] - number(m["share"])) < 0.06 or layer + 1 < w.layers:
        return every[layer, head], every.mean()
    return last[head], last.mean()


# --- counts of labels -------------------------------------------------------------------------


def _labelled(w: World) -> int:
    return len({head for head, *_ in w.labels})


def _having(w: World, m: Match) -> list[str]:
    """The labels of a list are there, no more, and between its ends."""
    listed = re.findall(r"L\d+·H\d+", m["list"])
    more = int(m["more"] or 0)
    own = {name for head, name, _ in w.labels if head == listed[0]}
    having = {name: {h for h, other, _ in w.labels if other == name} for name in own}
    fits = [h for h in having.values() if set(listed) <= h and len(h) == int(m["n"])]
    if len(listed) + more != int(m["n"]):
        return [f"says {m['n']} heads, lists {len(listed) + more}"]
    return [] if fits else [f"says {m['n']} heads: { ({k: len(v) for k, v in having.items()}) }"]


COUNTS = (
    Pattern(
        "labelled heads", r"(?:^|, ){some=} of its {all=} heads ", {
            "some": lambda w, m: _labelled(w), "all": lambda w, m: w.layers * w.heads,
        },
    ),
    Pattern(
        "heads of a label", r"(?P<n>\d+) heads have this label(?:, {least%} to {most%})?: "
        r"(?P<list>.+?)(?: and (?P<more>\d+) more)?$", {}, also=_having,
    ),
    Pattern(
        "heads of a kind", r"^(?P<title>[^:]+), {n=} heads?: (?=L\d+·H\d+)", {
            "n": lambda w, m: max(_of_title(w, m["title"]).values(), default=0),
        },
    ),
)  # fmt: skip


def _of_title(w: World, title: str) -> dict[str, int]:
    """Label, or kind of label, that the title may be -> heads that have it."""
    plain = title[:1].lower() + title[1:]
    names = {n for _, n, _ in w.labels if n in (title, plain)}
    if plain == "syntactic relation":
        return {plain: len({h for h, n, _ in w.labels if " → " in n})}
    return {name: len({h for h, n, _ in w.labels if n == name}) for name in names}


PATTERNS: tuple[Pattern, ...] = (*LABELS, *LANGUAGE, *OF_MODEL, *ROWS, *COUNTS)
