"""What a reader knows of replayed heads after ten seconds: sentences, and the table behind them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from headscope.claims.reading import Reading
from headscope.claims.verdict import above
from headscope.core.results import LIMITS, at
from headscope.core.wording import capital, how_many, number
from headscope.experiments.replay import terms
from headscope.page.sections import OpeningPlan, heading_of
from headscope.page.tabulate import Cell, Column, Rows, Table

QUARTER = 0.25
PUBLISHED = 0.16  # Hayes, Li and Andreas 2026: rise of the perplexity, a quarter of the heads
YOURS, OURS_OF_RULES = "your_rules", "rules"


def findings(run: Reading) -> list[str]:
    """The rise with a quarter of the heads replaced, beside other replacements; how far it can go;
    and whether the rules are what does it.
    """
    parts = (
        _indifferent_finding,
        _main_finding,
        _yours_finding,
        _all_finding,
        _random_finding,
        _better_finding,
        _source_finding,
        _weights_finding,
    )
    return [part(run) for part in parts]


def _names(run: Reading) -> list[str]:
    return [str(name) for name in run.data["replacement"].values]


def _shares(run: Reading) -> list[float]:
    return [float(share) for share in run.data["share"].values]


def _first_order(run: Reading) -> str:
    return str(run.data["order"].values[0])


def _quarter(run: Reading) -> int:
    """The place of the share that is nearest to a quarter."""
    return int(np.argmin(np.abs(np.array(_shares(run)) - QUARTER)))


def _change(run: Reading, name: str, order: str, place: int) -> tuple[float, float, float]:
    return at(run("change", replacement=name, order=order), place)


def _who(run: Reading, place: int) -> str:
    """`25 % of its heads (those explained best)`, or the heads by name."""
    order = _first_order(run)
    if order == "chosen":
        return terms.some_heads(terms.heads_in(run.data, run.names, 0))
    share = _shares(run)[place]
    if share == 1:
        return "all heads"
    return f"{terms.share_text(share)} of its heads ({terms.order_name(run.data, order)})"


def _called(run: Reading, name: str) -> str:
    return terms.replacement_name(name, run.data)


def _moves(run: Reading) -> str:
    return terms.compared(run.data).moves


def _rivals(run: Reading) -> dict[str, bool]:
    """Whether what else stood in costs surely more than rules do, by replacement."""
    order, place = _first_order(run), _quarter(run)
    if OURS_OF_RULES not in _names(run):
        return {}
    return {
        name: above(*at(run("beyond_rules", replacement=name, order=order), place)).holds
        for name in _names(run)
        if name not in (OURS_OF_RULES, YOURS)
    }


def _indifferent(run: Reading) -> bool:
    """Whether rules do no better than anything else, as in an untrained network."""
    rivals = _rivals(run)
    return bool(rivals) and not any(rivals.values())


def _indifferent_finding(run: Reading) -> str:
    if not _indifferent(run):
        return ""
    others = "; ".join(_called(run, name) for name in _rivals(run))
    return (
        f"Nothing else that stood in for heads ({others}) costs surely more than their rules: that "
        "rules do better is not shown here."
    )


def _main_finding(run: Reading) -> str:
    names, place, order = _names(run), _quarter(run), _first_order(run)
    first, *others = names
    after = terms.compared(run.data).after
    changes = {name: terms.change_text(*_change(run, name, order, place)) for name in names}
    beside = "; ".join(f"by {_called(run, name)}, by {changes[name]}" for name in others)
    return (
        f"With the attention of {_who(run, place)} replaced by {_called(run, first)}, "
        f"{_moves(run)} {changes[first]}{after}" + (f"; {beside}." if beside else ".")
    )


def _yours_finding(run: Reading) -> str:
    """Whether the user's rules lose more or less than ours."""
    if not {YOURS, OURS_OF_RULES} <= set(_names(run)):
        return ""
    parts = at(run("beyond_rules", replacement=YOURS, order=_first_order(run)), _quarter(run))
    verdict = above(*parts)
    if verdict.holds:
        return "Your rules lose surely more than those that were chosen here."
    if verdict.fails and parts[2] < 0:
        return "Your rules lose surely less than those that were chosen here."
    return (
        "Whether your rules lose more than those that were chosen here, these inputs cannot tell."
    )


def _all_finding(run: Reading) -> str:
    shares, order = _shares(run), _first_order(run)
    name = _names(run)[0]
    if shares[-1] != 1 or len(shares) == 1 or name != OURS_OF_RULES:
        return ""
    every = terms.change_text(*_change(run, name, order, len(shares) - 1))
    text = f"With all heads replaced by {_called(run, name)}, {_moves(run)} {every}."
    if not terms.of_loss(run.data) or _indifferent(run):
        return text
    enough = [share for place, share in enumerate(shares) if _holds(run, name, order, place)]
    limit = f"{100 * PUBLISHED:g} %"
    if not enough:
        return f"{text} At no share that was tried is the rise surely below {limit}."
    return f"{text} It is surely below {limit} up to {terms.share_text(max(enough))} of the heads."


def _holds(run: Reading, name: str, order: str, place: int) -> bool:
    value, _, high = _change(run, name, order, place)
    return (high if np.isfinite(high) else value) < PUBLISHED


def _random_finding(run: Reading) -> str:
    if "random" not in run.data["order"].values or _names(run)[0] != OURS_OF_RULES:
        return ""
    place = _quarter(run)
    if _shares(run)[place] == 1:
        return ""
    drawn = int(run.data.attrs["draws"])
    change = terms.change_text(*_change(run, OURS_OF_RULES, "random", place))
    return (
        f"With as many heads drawn at random ({how_many(drawn, 'draw')}) replaced by "
        f"{_called(run, OURS_OF_RULES)}, {_moves(run)} {change}."
    )


def _better_finding(run: Reading) -> str:
    """Which other replacements cost surely more than rules do."""
    rivals = _rivals(run)
    if not any(rivals.values()):
        return ""
    more = [_called(run, name) for name, dearer in rivals.items() if dearer]
    unsure = [_called(run, name) for name, dearer in rivals.items() if not dearer]
    said = f"Surely more than rules cost: {', '.join(more)}."
    return f"{said} Not told from rules, or better: {', '.join(unsure)}." if unsure else said


def _source_finding(run: Reading) -> str:
    """That rules are those of an atlas, and whether inputs that try them may have chosen them."""
    if str(run.data.attrs.get("rules_of")) != "atlas":
        return ""
    ends = {
        "possible": " that read the same texts",
        "no": " that read other files",
        "unknown": "; whether it read the same texts is not known",
    }
    return f"The rules are those of an atlas{ends[str(run.data.attrs['chosen_on_tried'])]}."


def _weights_finding(run: Reading) -> str:
    return terms.weights_from(run.data)


def table(run: Reading) -> Table | None:
    """Each replacement at each share."""
    replay, names, shares = run.data, _names(run), _shares(run)
    groups = []
    for order in map(str, replay["order"].values):
        rows = [
            [
                Cell(capital(_called(run, name))),
                *(_cell(*_change(run, name, order, place)) for place in range(len(shares))),
            ]
            for name in names
        ]
        groups.append(Rows(rows, capital(terms.order_name(run.data, order))))
    unit = "% of heads"
    columns = [Column("Replaced by"), *(Column(f"{100 * share:.3g}", unit) for share in shares)]
    perplexity = number(float(np.exp(float(replay["baseline"])))) if terms.of_loss(replay) else ""
    what = terms.compared(replay).cells.format(perplexity=perplexity)
    caption = (
        f"{what}. 95 % intervals, over {terms.units_of(replay)}. Losses, and which heads "
        "were replaced: tables/replay_curves and replay_heads."
    )
    return Table("Replaced heads", columns, groups, caption, inline=False)


def _cell(value: float, low: float, high: float) -> Cell:
    text, _, ends = terms.change_text(value, low, high).partition(" %")
    return Cell(text, ends.strip())


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """`replay_curves`: a row per replacement, order and share; `replay_heads`: a row per set and
    head that is replaced in it.

    replay_curves  replacement, order, share, heads, loss and change with their ends
    replay_heads   set, order, share, name (as papers count), layer, head (from 0)
    """
    return {
        "replay_curves": pd.DataFrame(list(_curves(run))),
        "replay_heads": pd.DataFrame(
            list(_heads(run)), columns=["set", "order", "share", "name", "layer", "head"]
        ),
    }


def _curves(run: Reading) -> Iterator[dict[str, object]]:
    replay = run.data
    size = replay.sizes["layer"] * replay.sizes["head"]
    for name in _names(run):
        for order in map(str, replay["order"].values):
            for share in _shares(run):
                one = replay.sel(replacement=name, order=order, share=share)
                row: dict[str, object] = {"replacement": name, "order": order, "share": share}
                row["heads"] = max(1, round(share * size))
                for variable in ("loss", "change"):
                    row |= {variable + end: float(one[variable + end]) for end in ("", *LIMITS)}
                yield row


def _heads(run: Reading) -> Iterator[tuple[object, ...]]:
    replay = run.data
    numbers = replay["layer"].values.tolist()
    there = replay["replaced"].transpose("set", "layer", "head").values > 0
    for row, layer, head in np.argwhere(there).tolist():
        name = str(replay["set"].values[row])
        order, _, share = name.split(" ")
        own = run.names.own(numbers[layer], head)
        yield name, order, float(share), own, numbers[layer], head


OPENING = OpeningPlan(
    heading=heading_of("Can rules stand in for the heads of ", "?"),
    id="replay",
    nothing="unlabelled",
)
