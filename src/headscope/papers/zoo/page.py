"""The page of a zoo: sentences, the table of claims and figures; it works offline."""

import math
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import quote

import headscope
from headscope.claims.verdict import Outcome
from headscope.core.display import printable
from headscope.core.head_names import HeadNames
from headscope.core.results import shape
from headscope.core.wording import fixed, number, percent
from headscope.page.shell import plain_page
from headscope.page.svg import Styles, inline_panel
from headscope.papers import claim_engine
from headscope.papers.claim_engine import ClaimOutcome, PaperClaim, signed
from headscope.papers.zoo.claims import CLAIMS, GROUPS, REFERENCES
from headscope.papers.zoo.figure import BEST_HEADS, all_panels, caption, depth_shades
from headscope.papers.zoo.functions import summary
from headscope.papers.zoo.outcome import Answers, ZooOutcome, held

WIDTH = 2.9  # inches, as the report's three beside each other
GLYPHS = {"^": "▲", "s": "■", "v": "▼", "o": "●", "D": "◇"}


@dataclass(frozen=True, slots=True)
class ClaimCell:
    """What a model says to a claim; `untrained` is the number of a network without training of
    which it holds too, `smallest` what the data could have shown that cannot tell.
    """

    outcome: Outcome
    text: str = ""
    interval: str = ""
    detail: str = ""
    untrained: str = ""
    smallest: str = ""


def render(zoo: ZooOutcome) -> str:
    """The page as text."""
    styles = Styles()
    figures = _figures(zoo, styles)  # before the page takes the styles
    return plain_page(
        "zoo",
        "headscope.papers",
        styles.css(),
        rules="\n".join(f".shade-{step}{{fill:var(--ramp-{step})}}" for step in depth_shades()),
        headlines=zoo.headlines,
        names=HeadNames(()),
        controlled=any(run.beside.untrained for run in zoo.asked.values()),
        failed={label: printable(why) for label, why in zoo.failed.items()},
        models=[_model(zoo, label) for label in zoo.runs],
        functions=zoo.functions,
        pairs=zoo.counterparts,
        summary=summary(zoo.functions),
        groups=[(g.title, [_row(c, zoo.answers[c.key]) for c in g.claims]) for g in GROUPS],
        outcomes=list(Outcome),
        glyphs=GLYPHS,
        pictures=figures,
        definitions=_definitions(),
        references=REFERENCES.values(),
        facts=_facts(zoo),
        command=printable(zoo.manifest.get("command", "")),
        version=headscope.__version__,
    )


def _figures(zoo: ZooOutcome, styles: Styles) -> list[dict[str, Any]]:
    """The figures of small panels (title, markup made here); shades: of the key's ramp."""
    return [
        {
            "figure": multiple,
            "caption": caption(zoo, multiple, every),
            "panels": [
                (
                    panel.title,
                    inline_panel(panel, styles, prefix=f"{multiple.name}{at}-", width=WIDTH),
                )
                for at, panel in enumerate(every)
            ],
            "shades": depth_shades() if multiple is BEST_HEADS else [],
        }
        for multiple, every in all_panels(zoo, key=False)
    ]


def bound_words(claim: PaperClaim) -> str:
    """`> 50 %`: where the number must lie; "" for a claim without a bound."""
    if claim.bound is None:
        return ""
    test, bound = claim.bound.test, claim.bound.value
    sign = claim_engine.TESTS[test][0]
    if claim.unit == "share":
        return f"{sign} {percent(bound) if bound else '0 %'}"
    if claim.unit == "points":
        return f"{sign} {100 * bound:g} points"
    unit = {"heads": " heads", "nats": " nats"}.get(claim.unit, "")
    space = "" if test == "near" else " "
    return f"{sign}{space}{bound:g}{unit}".replace("-", "−")


def _row(claim: PaperClaim, answers: Answers) -> dict[str, Any]:
    holding, answered = held(answers)
    return {
        "claim": claim,
        "bound": bound_words(claim),
        "held": f"{holding} of {answered}" if answered else "—",
        "cells": [cell(outcome) for outcome in answers.values()],
    }


def cell(outcome: ClaimOutcome) -> ClaimCell:
    """One outcome as text; a claim that was not asked gives the reason, never a 0."""
    measured = outcome.measured
    if measured is None:
        return ClaimCell(outcome.outcome, detail=outcome.verdict.needs)
    text = _number_text(outcome.claim.unit, measured.value, measured.low, measured.high)
    value, bracket, interval = text.partition(" [")
    also, smallest = (
        _number_text(outcome.claim.unit, one, math.nan, math.nan)
        for one in (outcome.untrained_value, outcome.verdict.smallest)
    )
    return ClaimCell(
        outcome.outcome,
        value,
        bracket.strip() + interval,
        measured.detail,
        also if outcome.untrained else "",
        smallest if math.isfinite(outcome.verdict.smallest) else "",
    )


def _number_text(unit: str, value: float, low: float, high: float) -> str:
    if unit == "share":
        return percent(value, low, high)
    if unit == "points":
        ends = f" [{signed(100 * low)}, {signed(100 * high)}]" if math.isfinite(low) else ""
        return signed(100 * value) + ends
    if unit == "heads":
        between = math.isfinite(low) and low < high
        return fixed(value, 0) + (f" [{fixed(low, 0)}, {fixed(high, 0)}]" if between else "")
    return number(value, low, high)


def _definitions() -> list[tuple[list[PaperClaim], str]]:
    alike = groupby(CLAIMS, key=lambda claim: (claim.number, bound_words(claim), claim.place))
    return [(list(claims), bound) for (_, bound, _), claims in alike]


def _model(zoo: ZooOutcome, label: str) -> dict[str, Any]:
    run = zoo.runs[label]
    model, counts = run.manifest["model"], run.manifest["counts"]
    layers, heads = shape(run.tree)
    place = run.path.relative_to(zoo.path).as_posix() if run.path and run.has_report else ""
    return {
        **{key: model[key] for key in ("architecture", "stack", "revision", "sha256")},
        **{key: counts[key] for key in ("documents", "tokens", "skipped", "windowed")},
        "label": label,
        "layers": layers,
        "heads": heads,
        "special": ", ".join(map(printable, model["special_tokens"].values())),
        "href": f"{quote(place)}/report.html" if place else "",
    }


def _facts(zoo: ZooOutcome) -> dict[str, str]:
    tree = next(iter(zoo.runs.values())).tree
    documents = sorted({int(run.tree.attrs["documents"]) for run in zoo.runs.values()})
    read = " to ".join(f"{n:,}" for n in (documents[0], documents[-1])[: len(documents)])
    return {
        "Corpus": printable(tree.attrs["corpus"]),
        "Read": f"{read} document{'s' if documents[-1] != 1 else ''}",
        "Intervals": f"95 %, over documents, in {tree.attrs['replicates']} groups at most",
        "Spec fingerprint": str(zoo.manifest.get("fingerprint", ""))[:16],
    }
