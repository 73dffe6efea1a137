"""Verdicts on whether any head has each of the roles that circuits look for.

It holds where a head has the label. Else it does not hold where the whole interval of a number that
the label rests on lies on the wrong side for every head, or where heads pass that a network without
training has as well. Else these inputs cannot tell.
"""

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.head_labels import all_claims, head_labels
from headscope.claims.reading import Reading
from headscope.claims.verdict import (
    MEANINGS,
    Outcome,
    Verdict,
    above,
    all_of,
    any_of,
    beyond_chance,
    known,
    not_asked,
)
from headscope.core.head_names import names_of
from headscope.core.intervals import Estimate
from headscope.core.results import at, derived, estimate, group
from headscope.core.wording import MISSING, fixed
from headscope.experiments.circuits import claims, relation_claims, written_answers
from headscope.page.sections import Manifest
from headscope.page.tabulate import Cell, Column, Table, rows_table, share

RULES = claims.RULES | written_answers.RULES
SURE = 4.0  # standard deviations: one pair in 30,000 lies higher by chance
PATHS = "composition"
TITLES = {kind: rule.title for kind, rule in RULES.items()} | {
    PATHS: "keys of a head that induces read an earlier head"
}
PROMPTS = "prompts with corrupted ones (--prompts)"
NEEDS = {
    "successor": "ten ordinals or more that are one token each",
    "retrieval": "a haystack, and ten needles or more that the model tells",
    **dict.fromkeys(relation_claims.KINDS, "ten pairs or more of words that are one token each"),
    "writes_answer": PROMPTS,
    "carries_answer": PROMPTS,
}
UNKNOWN = Verdict(Outcome.CANNOT_TELL, needs="prompts that the model surely answers above chance")


@derived
def verdicts(tree: xr.DataTree) -> Mapping[str, Verdict]:
    """Kind of label -> verdict whether any head has it; and whether induction heads read earlier
    ones.
    """
    return {kind: _of_kind(tree, kind) for kind in RULES} | {PATHS: _of_paths(tree)}


def _of_kind(tree: xr.DataTree, kind: str) -> Verdict:
    numbers = _numbers(tree, kind)
    if not numbers:
        return not_asked(NEEDS.get(kind, "random tokens that come again"))
    if kind in written_answers.RULES and not written_answers.answers_known(_dataset(tree, kind)):
        return UNKNOWN
    if passing := _passing(tree, kind):
        return known(any(claim.departs for claim in passing))
    values = numbers[0][0].value
    return any_of(
        _of_head(tree, kind, place) for place in np.argwhere(np.isfinite(values)).tolist()
    )


def _passing(tree: xr.DataTree, kind: str) -> list[Claim]:
    return [one for one in all_claims(tree) if one.kind == kind and RULES[kind].passes(one)]


def _of_head(tree: xr.DataTree, kind: str, place: list[int]) -> Verdict:
    """Whether every number behind a label lies above its bound."""
    verdict = all_of(above(*at(part, *place), bound) for part, bound in _numbers(tree, kind))
    if kind in written_answers.RULES:
        q = estimate(_dataset(tree, kind), "effect_q").value[tuple(place)]
        return beyond_chance(verdict, float(q))
    return verdict


def _dataset(tree: xr.DataTree, kind: str) -> xr.Dataset:
    name = written_answers.NAME if kind in written_answers.RULES else claims.NAME
    return group(tree, name) or xr.Dataset()


@derived
def _numbers(tree: xr.DataTree, kind: str) -> list[tuple[Estimate, float]]:
    """[layer, head], or [layer, head, relation], the numbers behind a label, each with its bound;
    empty where not measured.
    """
    dataset, rule = _dataset(tree, kind), RULES[kind]
    names, choice = ("score", "null", "surely_above"), {"circuit": kind}
    if kind in relation_claims.KINDS:
        score_name, choice = relation_claims.KINDS[kind], {}
        names = score_name, relation_claims.NULL[score_name], relation_claims.ABOVE[score_name]
    if kind in {*claims.SCORES, *relation_claims.KINDS} and names[0] in dataset:
        score, null, over = (estimate(dataset, name, **choice) for name in names)
        low, gain = over.value, score.value - null.value
        return [(score, rule.least), (Estimate(gain, low, 2 * gain - low), 0.0)]
    if rule.variable not in dataset or (kind in written_answers.RULES and "effect" not in dataset):
        return []
    numbers = [(estimate(dataset, rule.variable), rule.least)]
    if kind == "copying" and "copied" in dataset:
        numbers.append((estimate(dataset, "copied"), claims.COPIED))
    return numbers


def _of_paths(tree: xr.DataTree) -> Verdict:
    """The verdict on composition; weights are exact."""
    dataset = _dataset(tree, PATHS)
    inducing = [claim for claim in _passing(tree, "induction") if claim.departs]
    if PATHS not in dataset or not inducing:
        needs = "a head that induces" if PATHS in dataset else "composition, by weights"
        return not_asked(needs)
    readers = [claim.layer * dataset.sizes["head"] + claim.head for claim in inducing]
    over = dataset["composition_above"].sel(way="key").values[readers]
    return known(bool((over >= SURE).any()))


def other_findings(tree: xr.DataTree) -> list[str]:
    """Kinds that no head has, and kinds on which these inputs cannot tell."""
    failing, unsure = list[str](), list[str]()
    for kind, verdict in verdicts(tree).items():
        if verdict.fails:
            failing.append(TITLES[kind])
        elif verdict.outcome is Outcome.CANNOT_TELL:
            shown = _would_show(verdict)
            unsure.append(TITLES[kind] + f" ({shown} would have shown)" * bool(shown))
    said = {"Does not hold of any head": failing, "These inputs cannot tell of any head": unsure}
    return [f"{words}: {'; '.join(kinds)}." for words, kinds in said.items() if kinds]


def _would_show(verdict: Verdict) -> str:
    """`3.2 points above its threshold`; '' where nothing could be shown."""
    there = math.isfinite(verdict.smallest)
    return f"{fixed(100 * verdict.smallest, 1)} points above its threshold" if there else ""


def verdict_table(run: Reading, manifest: Manifest) -> Table | None:
    """Every kind of head with its verdict, and the head with the largest number."""
    rows = [_row(run.tree, kind, verdict) for kind, verdict in verdicts(run.tree).items()]
    most, least = Column("The most", "%"), Column("Threshold", "%")
    columns = "Some head", "Verdict", "Heads", most, least, "It takes"
    meanings = " ".join(f"{one.sign} {one}: {words}" for one, words in MEANINGS.items())
    caption = f"Whether any head has the label, and how many have. {meanings}"
    return rows_table("What is claimed of heads", columns, rows, caption)


def _row(tree: xr.DataTree, kind: str, verdict: Verdict) -> list[object]:
    numbers, heads, most = _numbers(tree, kind) if kind in RULES else [], MISSING, Cell(MISSING)
    least = f"{100 * RULES[kind].least:g}" if kind in RULES else MISSING
    if numbers:
        parts = numbers[0][0]
        every = (label for one in head_labels(tree).values() for label in one.labels)
        heads = str(len({(one.layer, one.head) for one in every if one.kind == kind}))
        first = [int(axis[0]) for axis in np.nonzero(parts.value == np.nanmax(parts.value))]
        number = share(*at(parts, *first))
        most = Cell(f"{names_of(tree).head(*first[:2])} {number.text}", number.small)
    outcome = verdict.outcome
    missing = verdict.needs or _would_show(verdict) or MISSING
    return [TITLES[kind], f"{outcome.sign} {outcome}", heads, most, least, missing]
