"""The sentences that can be recomputed: how each is written, and what its numbers are.

A row is a name, how the sentence is written (see `judging.compiled`; a head stands before it where
it is about one), and for each number a function of the world and the match. A row that is true
only if more holds has a function `also`, which gives what is wrong. Wording changes here, and
nowhere else.
"""

from __future__ import annotations

import re

from . import language_patterns
from .corpus import Input
from .pattern import HEAD, Match, Pattern, head_of
from .totals import Quantity
from .world import World

GOALS = {
    "the token itself": "to self", "the previous token": "to previous", "itself": "to self",
    "the next token": "to next", "the first token": "to first", "[CLS]": "to cls",
    "[SEP]": "to sep", "full stops and commas": "to punctuation", "punctuation": "to punctuation",
    "previous token": "to previous", "next token": "to next", "first token": "to first",
}  # fmt: skip
SPECIALS = {
    "[CLS]": "cls",
    "[SEP]": "sep",
    "the first token": "first",
    "full stops and commas": "punctuation",
    "some other token": "other",
}
G = "|".join(map(re.escape, GOALS))
S = "|".join(map(re.escape, SPECIALS))


def _sink(m: Match) -> str:
    """Of inputs of 16 tokens or more; of any, where the sentence does not say so."""
    return f"sink on {SPECIALS[m['goal']]}" + ("" if m["long"] else " in any input")


def _share(w: World, m: Match) -> Quantity:
    return w.of(GOALS[m["goal"]], head_of(m))


def _ordinary_share(w: World, m: Match) -> float:
    name = GOALS[m["goal"]]
    position = name in ("to self", "to previous", "to next", "to first")
    return w.ordinary(name) if position else w.of_mean_head(name)


def _norm(w: World, m: Match) -> Quantity:
    return w.of(f"norm of {SPECIALS[m['goal']]}", head_of(m))


def _norm_share(w: World, m: Match) -> Quantity:
    return w.of(f"norm share of {SPECIALS[m['goal']]}", head_of(m))


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
        "of the rest",
        HEAD + rf"gives (?P<goal>{G}) {{share%}} of what the first token leaves$",
        {"share": lambda w, m: w.of(f"of the rest {GOALS[m['goal']]}", head_of(m))},
    ),
    Pattern(
        "same word",
        HEAD + r"attends from words to the same word elsewhere, {share%}, where "
        "{usual%} is uniform$",
        {
            "share": lambda w, m: w.of("of words to the same word", head_of(m)),
            "usual": lambda w, m: w.totals["of words to the same word, uniform"],
        },
    ),
    Pattern(
        "sink",
        HEAD + rf"rests {{share%}} of its attention on (?P<goal>{S}), yet what (?P=goal) "
        "adds has norm {norm#}(?:, {part%} of all)?, against {others#} from other tokens$",
        {
            "share": lambda w, m: w.of(f"to {SPECIALS[m['goal']]}", head_of(m)),
            "norm": _norm,
            "part": _norm_share,
            "others": lambda w, m: w.of("norm of other", head_of(m)),
        },
        unbounded=("norm", "others"),
    ),
    Pattern(
        "sink in inputs",
        HEAD + rf"rests on (?P<goal>{S}) in {{inputs%}} of inputs"
        "(?P<long> of 16 tokens or more)?: more than 0.3 of the attention"
        r"(?:, with {part%} of the norm)?$",
        {
            "inputs": lambda w, m: w.of(_sink(m), head_of(m)),
            "part": _norm_share,
        },
    ),
    Pattern(
        "broad",
        HEAD + r"attends broadly: entropy {nats#} of {uniform#} nats$",
        {
            "nats": lambda w, m: w.of("entropy", head_of(m)),
            "uniform": lambda w, m: float(w.totals["uniform entropy"].value),
        },
        unbounded=("nats",),
    ),
    Pattern(
        "few tokens",
        HEAD + r"focuses on few tokens without one main target: entropy {nats#} of "
        "{uniform#} nats$",
        {
            "nats": lambda w, m: w.of("entropy", head_of(m)),
            "uniform": lambda w, m: float(w.totals["uniform entropy"].value),
        },
        also=lambda w, m: [
            f"gives {goal} more than half"
            for goal in GOALS.values()
            if goal in w.totals and w.of(goal, head_of(m)).value > 0.5
        ],
        unbounded=("nats",),
    ),
    Pattern(
        "nearby",
        HEAD + r"gives {share%} of its attention within 3 tokens$",
        {"share": lambda w, m: w.of("nearby", head_of(m))},
    ),
    Pattern(
        "first and latest",
        HEAD + r"gives the first 4 and latest 64 tokens {share%}, where "
        "{usual%} is uniform$",
        {
            "share": lambda w, m: w.of("streaming", head_of(m)),
            "usual": lambda w, m: float(w.totals["uniform streaming"].value),
        },
    ),
)


# --- the model as a whole ---------------------------------------------------------------------


def _read(w: World, m: Match) -> list[Input]:
    """Coreference is asked of whole documents, all else of sentences."""
    return w.documents if m["where"] == "coreference" else w.inputs


OF_MODEL = (
    Pattern(
        "inputs",
        r"{documents=} documents, {tokens=} tokens",
        {
            "documents": lambda w, m: len({one.document for one in _read(w, m)}),
            "tokens": lambda w, m: sum(map(len, _read(w, m))),
        },
    ),
    Pattern(
        "mean head, target",
        rf"^The mean head gives (?P<goal>{G}) {{share%}} of its attention\.$",
        {"share": lambda w, m: w.of_mean_head(GOALS[m["goal"]])},
    ),
    Pattern(
        "mean head, entropy",
        r"^The entropy of a mean head is {nats#} of {uniform#} nats\.$",
        {
            "nats": lambda w, m: w.of_mean_head("entropy"),
            "uniform": lambda w, m: float(w.totals["uniform entropy"].value),
        },
    ),
    Pattern(
        "mean head, distance",
        r"^Half of a mean head’s attention stays within {half#} tokens; its "
        r"mean distance is {mean#}\.$",
        {
            "half": lambda w, m: w.of_mean_head("reach of 0.5"),
            "mean": lambda w, m: w.of_mean_head("mean distance"),
        },
    ),
    Pattern(
        "uniform distance",
        r"uniform attention: {mean#} tokens",
        {"mean": lambda w, m: float(w.totals["uniform distance"].value)},
    ),
    Pattern(
        "weight and norm",
        rf"^(?P<goal>{G}) draws {{share%}} of the attention and makes {{norm%}} "
        r"of the summed norms\.$",
        {
            "share": lambda w, m: w.of_mean_head(GOALS[m["goal"]]),
            "norm": lambda w, m: _summed_norms(w, GOALS[m["goal"]].removeprefix("to ")),
        },
    ),
    Pattern(
        "mean head, sink",
        rf"^A mean head has a sink on (?P<goal>{S}) in {{share%}} of inputs"
        r"(?P<long> of 16 tokens or more)?\.$",
        {"share": lambda w, m: w.of_mean_head(_sink(m))},
    ),
    Pattern(
        "mentions",
        r"^Left out: {new=} mentions of what was not mentioned before",
        {"new": lambda w, m: _first_mentions(w)},
    ),
    Pattern(
        "mentions with an antecedent",
        r"n = {n=} mentions with an antecedent",
        {"n": lambda w, m: w.antecedents["all"].count},
    ),
    Pattern("words", r"; n = {n=} words\.", {"n": lambda w, m: w.relations["all"].count}),
)


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
        "labelled heads",
        r"(?:^|, ){some=} of its {all=} heads ",
        {
            "some": lambda w, m: _labelled(w),
            "all": lambda w, m: w.layers * w.heads,
        },
    ),
    Pattern(
        "heads of a label",
        r"(?P<n>\d+) heads have this label(?:, {least%} to {most%})?: "
        r"(?P<list>.+?)(?: and (?P<more>\d+) more)?$",
        {},
        also=_having,
    ),
    Pattern(
        "heads of a kind",
        r"^(?P<title>[^:]+), {n=} heads?: (?=L\d+·H\d+)",
        {
            "n": lambda w, m: max(_of_title(w, m["title"]).values(), default=0),
        },
    ),
)


def _of_title(w: World, title: str) -> dict[str, int]:
    """Label, or kind of label, that the title may be -> heads that have it."""
    plain = title[:1].lower() + title[1:]
    names = {n for _, n, _ in w.labels if n in (title, plain)}
    if plain == "syntactic relation":
        return {plain: len({h for h, n, _ in w.labels if " → " in n})}
    if plain == "sink in nearly all inputs":
        names = {n for _, n, _ in w.labels if n.endswith("in nearly all inputs")}
        return {plain: len({h for h, n, _ in w.labels if n in names})}
    if plain in ("kind of words", "pair of words"):
        verb = "looks for" if plain.startswith("kind") else "attends from"
        return {plain: len({h for h, _, s in w.labels if s.startswith(verb)})}
    return {name: len({h for h, n, _ in w.labels if n == name}) for name in names}


PATTERNS: tuple[Pattern, ...] = (*LABELS, *language_patterns.PATTERNS, *OF_MODEL, *COUNTS)
