"""What is said of the rules of heads: of all heads, on the card of each, and in a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyses.explained.contexts import Contexts
from headscope.analyses.explained.rules import RESTS
from headscope.claims.attention_rule import REST
from headscope.claims.card_part import CardPart, named_ends
from headscope.claims.control import controls
from headscope.claims.reading import Reading
from headscope.core.results import at, derived, group, needed, shape, token_names
from headscope.core.wording import percent
from headscope.page.tabulate import Cell, Column, Rows, Table, points, share

LEAST_SAID = 0.01  # ours: share of a rule that is named
LEAST_FACTOR = 1.5  # ours: of a key token that is named
LEAST_ROLE = 0.1  # ours: of what a head gathers, for a role
SAME_TRIGGER = 0.5  # ours: of the queries of the rarer of two rules, from which on it is one
TABLE_ROWS = 20
BY = ", by "  # in the name of a rule: of which queries
# Rules whose keys have names of their own where the tokenizer has such tokens.
SPECIAL = {"the first token": "cls", "the opening token": "cls", "the separators": "sep"}


@dataclass(frozen=True)
class RuleOfHead:
    """One rule of a head, and how much of what the head gathers it explains.

    kind     as of `claims.attention_rule.KINDS`
    share    with the ends of its interval
    place    among the rules of the head, as they were chosen; -1 of the rest
    rests    whether it is where the head looks that no rule tells where
    """

    name: str
    kind: str
    weight: float
    share: tuple[float, float, float]
    place: int
    rests: bool = False


def rules_of(run: Reading, layer: int, head: int) -> list[RuleOfHead]:
    """The rules of a head and its rest, the largest share first; none where none were chosen."""
    data, names = chosen(run.tree), rule_names(run.tree)
    kinds = json.loads(data.attrs["rule_kinds"])
    shares = run("rule_share").map(lambda part: part[layer, head])
    rest = int(data["rest"].values[layer, head])
    if rest < 0:
        return []
    made = [
        RuleOfHead(
            names[number],
            kinds[number],
            float(data["weight"].values[layer, head, slot]),
            at(shares, slot),
            slot,
        )
        for slot, number in enumerate(data["rule"].values[layer, head].tolist())
        if number >= 0
    ]
    last = len(shares.value) - 1
    made.append(
        RuleOfHead(_called(run.tree, RESTS[rest]), REST, np.nan, at(shares, last), -1, rests=True)
    )
    return sorted(made, key=lambda rule: -np.nan_to_num(rule.share[0]))


@derived
def chosen(tree: xr.DataTree) -> xr.Dataset:
    """The results, with the rules of what is gathered, or of attention where norms are unknown."""
    data = needed(tree, "explained")
    known = (data["rest"].sel(explains="gathering") >= 0).any()
    return data.sel(explains="gathering" if known else "attention")


@derived
def rule_names(tree: xr.DataTree) -> list[str]:
    """The names of all rules that were tried, special tokens as the tokenizer has them."""
    return [_called(tree, name) for name in json.loads(needed(tree, "explained").attrs["rules"])]


def _called(tree: xr.DataTree, name: str) -> str:
    return token_names(tree).get(SPECIAL.get(name, "")) or name


def roles(run: Reading, layer: int, head: int) -> list[RuleOfHead]:
    """Rules with different triggers that each explain at least a tenth of all that a head gathers.

    Of all: a query counts by how much it gathers. Of rules that mostly apply to
    the same queries, or look for the same by other kinds of queries ("…, by marks"), only the one
    that explains most counts. The largest share first.
    """
    overlap, several = run.data["trigger_overlap"].values[layer, head], list[RuleOfHead]()
    share = run.data.get("role_share", run.data["rule_share"]).values[layer, head]
    rules = [rule for rule in rules_of(run, layer, head) if not rule.rests]
    for rule in sorted(rules, key=lambda rule: -np.nan_to_num(share[rule.place])):
        apart = all(
            overlap[rule.place, other.place] < SAME_TRIGGER
            and rule.name.partition(BY)[0] != other.name.partition(BY)[0]
            for other in several
        )
        if share[rule.place] >= LEAST_ROLE and apart:
            several.append(rule)
    return several


def sentence(run: Reading, layer: int, head: int) -> str:
    """`54 % from [CLS], 32 % from direct object → verb; 14 % is not explained`; "" of no rules."""
    rules = [one for one in rules_of(run, layer, head) if one.share[0] >= LEAST_SAID]
    if not rules:
        return ""
    said = [
        f"{percent(one.share[0])} from {one.name}{', where it rests' * one.rests}" for one in rules
    ]
    left = 1 - at(run("gathering.rules"), layer, head)[0]
    return f"{', '.join(said)}; {percent(left)} is not explained"


def _said(run: Reading, layer: int, head: int) -> Iterator[str]:
    if not run.there or not (said := sentence(run, layer, head)):
        return
    yield f"of what it gathers {said}"
    whole, beyond = (at(run(key), layer, head) for key in ("gathering.rules", "beyond"))
    yield f"explained: {percent(*whole)}; by content, beyond position and rest: {percent(*beyond)}"
    if len(several := roles(run, layer, head)) > 1:
        yield f"{len(several)} roles: {'; '.join(rule.name for rule in several)}"
    if keys := _keys(run, layer, head):
        yield f"more than its rules say goes to {', '.join(keys)}"
    yield from _not_explained(run, layer, head)


def _lines(run: Reading, layer: int, head: int) -> Iterator[str]:
    yield from _said(run, layer, head)
    if run.there:
        contexts = Contexts(run)
        for rule in _shown(run, layer, head):
            yield from contexts.lines(layer, head, rule.place, rule.name)


def _shown(run: Reading, layer: int, head: int) -> list[RuleOfHead]:
    """The rules that are named, without the rest."""
    rules = rules_of(run, layer, head)
    return [one for one in rules if not one.rests and one.share[0] >= LEAST_SAID]


def _page(run: Reading) -> dict[str, Any]:
    """rules: what is said of each head, the names of its rules, and the contexts of each."""
    if not run.there:
        return {}
    places = [*np.ndindex(*shape(run.tree))]
    rules = [_shown(run, *place) for place in places]
    slots = [(*at, [one.place for one in some]) for at, some in zip(places, rules, strict=True)]
    said = {
        "lines": [list(_said(run, *place)) for place in places],
        "names": [[one.name for one in some] for some in rules],
    }
    return {"rules": said | Contexts(run).page(slots)}


def _keys(run: Reading, layer: int, head: int, *, most: int = 5) -> list[str]:
    """The tokens that get most beyond what the rules predict, those that get the most first."""
    data = chosen(run.tree)
    places = zip(
        data["key_factor"].values[layer, head],
        data["key_token"].values[layer, head],
        strict=True,
    )
    return [f"“{token}”" for factor, token in places if factor > LEAST_FACTOR and token][:most]


def _not_explained(run: Reading, layer: int, head: int) -> Iterator[str]:
    data = run.data
    if np.isfinite(on := float(data["outside_share"].values[layer, head])) and on >= LEAST_ROLE:
        token = data["outside_token"].values[layer, head]
        yield f"of what is not explained {percent(on)} lies on “{token}”"
    for weight, predicted, query, key in zip(
        *(
            data[name].values[layer, head]
            for name in (
                "unexplained",
                "unexplained_predicted",
                "unexplained_query_token",
                "unexplained_key_token",
            )
        ),
        strict=True,
    ):
        if np.isfinite(weight):
            yield (
                f"not explained: “{query}” gathers {percent(weight + predicted)} from “{key}”, "
                f"where its rules say {percent(predicted)}"
            )


def _data(run: Reading, layer: int, head: int) -> dict[str, Any]:
    if not run.there:
        return {}
    contexts = Contexts(run)
    rules = [
        {
            "rule": one.name,
            "kind": one.kind,
            "weight": one.weight,
            **named_ends(one.share),
            "contexts": [context.row for context in contexts.of(layer, head, one.place)],
        }
        for one in rules_of(run, layer, head)
    ]
    several = [rule.name for rule in roles(run, layer, head)]
    return {"rules": rules, "roles": several} if rules else {}


CARD = CardPart(place=12, title="Rules", lines=_lines, data=_data, page=_page)


def finding(run: Reading) -> str:
    """How much of what all heads gather is explained, and by content; "" without a number."""
    norms = run.has("all_gathering")
    if not norms and not run.has("all_attention"):
        return ""
    template = (
        "{all_gathering:%} of what its heads gather" if norms else "{all_attention:%} of attention"
    )
    said = f"Readable rules explain {template}, mean over heads, on inputs that chose none of them"
    usual = _of_control(run, "all_gathering" if norms else "all_attention")
    beside = f" (of networks without training: up to {percent(usual)})" if usual > 0 else ""
    words, content = f"{run.words(said)}{beside}", _of_control(run, "all_beyond")
    if not norms or not float(run("all_beyond").low) > max(content, 0.0):
        return f"{words}."
    more = run.words("; {all_beyond:%} is explained by content, beyond position and rest")
    least = f" (at most {percent(content)})" if np.isfinite(content) else ""
    return f"{words}{more}{least}."


def _of_control(run: Reading, name: str) -> float:
    """The largest of a number among networks without training; −∞ where none has it."""
    datasets = [group(network, run.question.name) for network in controls(run.tree)]
    values = [float(dataset[name]) for dataset in datasets if dataset is not None]
    return max(filter(np.isfinite, values), default=-np.inf)


def caption(run: Reading) -> str:
    """How to read the grids."""
    words: str = run.words(
        "Each cell is one head: (a) the share of what it gathers that its rules put on the same "
        "tokens, (b) how much of that position and rest alone do not explain. Rules were chosen on "
        "{chosen_on:,} inputs, and {scored_on:,} others are explained; a sample, means over "
        "queries; {over}."
    )
    return words


def table(run: Reading) -> Table | None:
    """The heads that content explains most, each with its rules."""
    beyond = run("beyond")
    order = np.argsort(-np.nan_to_num(beyond.low, nan=-1.0), axis=None, kind="stable")
    places = [divmod(int(one), beyond.value.shape[1]) for one in order[:TABLE_ROWS]]
    rows = [
        [
            Cell(run.names.own(*place)),
            Cell(sentence(run, *place)),
            share(*at(run("gathering.rules"), *place)),
            points(*at(beyond, *place)),
        ]
        for place in places
        if beyond.low[place] > 0
    ]
    columns = [
        Column("Head"),
        Column("What it gathers"),
        Column("Explained", "%", "gathering"),
        Column("By content", "points", "beyond"),
    ]
    caption = (
        f"The {len(rows)} heads of which rules of content explain most beyond position and rest, "
        "the surest first. Shares are of what a head gathers."
    )
    return Table("Rules of heads", columns, [Rows(rows)], caption) if rows else None
