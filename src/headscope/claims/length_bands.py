"""Where a label holds: in inputs of which lengths.

Attention to a sink, to a position, to few tokens depends on how long an input is, and a mean over
inputs of all lengths hides it. So a run keeps the sums behind its claims by length, too: the group
`bands` holds one group per band of lengths, in which the groups of analyses lie as they do in the
run itself. There the same rule applies to the same claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.plan import LabelRule
from headscope.claims.verdict import Outcome, above
from headscope.core.results import derived

BANDS = "bands"
LAST_TOKENS = (16, 32, 64, 128, 512, 2048)  # of the bands; longer inputs are one more
NAMES = (
    f"up to {LAST_TOKENS[0]}",
    *(f"{a + 1} to {b}" for a, b in pairwise(LAST_TOKENS)),
    f"more than {LAST_TOKENS[-1]}",
)


def band_of(tokens: int) -> str:
    """The name of the length band of an input: `17 to 32`."""
    return NAMES[sum(tokens > last for last in LAST_TOKENS)]


def shortest_first(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by band, in the order of bands; without empty ones."""
    return {name: counts[name] for name in NAMES if counts.get(name)}


@derived
def bands(tree: xr.DataTree) -> dict[str, xr.DataTree]:
    """Each length band with enough data, as a run, the shortest first; empty for a single band."""
    if BANDS not in tree.children:
        return {}
    there = tree.children[BANDS].children
    return {
        name: xr.DataTree(
            xr.Dataset(attrs=tree.attrs | there[name].attrs), children=there[name].children
        )
        for name in NAMES
        if name in there
    }


def where_it_holds(
    claim: Claim, rule: LabelRule, of_bands: Mapping[str, Mapping[tuple[object, ...], Claim]]
) -> str:
    """The input lengths for which a label holds, in words: `up to 32 tokens`.

    "" where a run tells no lengths apart; or where what a head knows of words holds in all, and is
    the same number in all. Of the rest nothing is known in longer inputs: a share of all attention
    depends on how many tokens share it.

    of_bands  band -> `place_of` a claim -> the same claim in inputs of these lengths
    """
    same = {name: claims.get(place_of(claim)) for name, claims in of_bands.items()}
    there = {name: one for name, one in same.items() if one and math.isfinite(one.low)}
    outcomes = {name: _outcome(one, rule) for name, one in there.items()}
    by_outcome = {each: [n for n, one in outcomes.items() if one is each] for each in Outcome}
    fails = by_outcome[Outcome.FAILS]
    if rule.words and not fails and not _differ(list(there.values())):
        return ""
    if holds := by_outcome[Outcome.HOLDS] or by_outcome[Outcome.CANNOT_TELL]:
        return f"{_joined(holds)} tokens"
    return f"not {_joined(fails)} tokens" if fails else ""


def place_of(claim: Claim) -> tuple[object, ...]:
    """Identifies a claim across length bands."""
    return claim.layer, claim.head, claim.kind, claim.name


def _outcome(claim: Claim, rule: LabelRule) -> Outcome:
    """For a rule that only asks for more than a baseline: whether the claim exceeds it."""
    return above(claim.value, claim.low, claim.high, rule.least or claim.reference).outcome


def _differ(claims: Sequence[Claim]) -> bool:
    """Whether the number changes with length, so that longer inputs are unknown."""
    return bool(claims) and min(one.high for one in claims) < max(one.low for one in claims)


def _joined(names: Sequence[str]) -> str:
    """`up to 32`, `17 to 64`, `up to 16 or 65 to 128`: adjacent bands are joined."""
    runs: list[list[int]] = []
    for at in map(NAMES.index, names):
        if runs and runs[-1][-1] == at - 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    return " or ".join(_range(run[0], run[-1]) for run in runs)


def _range(first: int, last: int) -> str:
    if not first:
        return f"up to {LAST_TOKENS[last]}" if last < len(LAST_TOKENS) else "any number of"
    more = LAST_TOKENS[first - 1]
    return f"more than {more}" if last == len(LAST_TOKENS) else f"{more + 1} to {LAST_TOKENS[last]}"
