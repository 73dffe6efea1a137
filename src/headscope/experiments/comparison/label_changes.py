"""Labels that heads gain or lose from the first model to the second.

Labels of both are held against the same networks without training. A label that one model lacks is
gained or lost only if that model's interval lies wholly below: numbers on both sides of a threshold
may be the same. Where no such claim is made its number is ordinary, unless claims of the kind ask
for more (`LabelRule.asks`): then nothing is said. Without a control nothing is gained or lost.
"""

from collections import Counter

import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.control import base_run, controls
from headscope.claims.head_labels import (
    all_claims,
    head_labels,
    label_rules,
)
from headscope.claims.headline import (
    AGAINST,
    asked_for_labels,
    asked_words,
    headline,
    labelled_heads,
    looks_untrained,
    unclaimed_words,
)
from headscope.claims.reading import Reading
from headscope.core.results import derived, shape, title_name


@derived
def label_changes(tree: xr.DataTree) -> dict[str, list[Claim]]:
    """Labels that are lost, and labels that are gained; none without a control."""
    if not controls(tree):
        return {}
    base = base_run(tree)
    return {"lost": _lacking(tree, base), "gained": _lacking(base, tree)}


def remarks(tree: xr.DataTree) -> list[list[str]]:
    """[unit] the labels that each head loses and gains, in words."""
    layers, heads = shape(tree)
    words: list[list[str]] = [[] for _ in range(layers * heads)]
    for how, claims in label_changes(tree).items():
        for one in claims:
            words[one.layer * heads + one.head].append(f"{how}: {one.label}")
    return words


def labels_finding(run: Reading) -> str:
    """Labels that are lost and gained, by number of heads; '' where the data allow no sentence."""
    parts = []
    for claims in label_changes(run.tree).values() if not unclaimed_words(run.tree) else ():
        names = Counter(one.name for one in claims).most_common()
        counts = "; ".join(f"{name}, {many} head{'s' * (many > 1)}" for name, many in names)
        parts.append(f"{len(claims)}{f' ({counts})' * bool(counts)}")
    return f"Labels that heads surely lose: {'; that they gain: '.join(parts)}." if parts else ""


def both_untrained(tree: xr.DataTree) -> bool:
    """Whether hardly any head of either model stands out, by questions that could show it."""
    return looks_untrained(tree) and looks_untrained(base_run(tree))


def control_words(tree: xr.DataTree) -> str:
    """The `headline` of both models; '' where no labels were asked for."""
    if not asked_for_labels(tree):
        return ""
    if not controls(tree) or unclaimed_words(tree):
        return headline(tree)
    one, other = (
        f"{labelled_heads(run)[0]} of {title_name(str(run.attrs['model']))}"
        for run in (base_run(tree), tree)
    )
    silent = " Both look untrained: nothing is said of how they differ." * both_untrained(tree)
    return (
        f"Of {labelled_heads(tree)[1]} heads each, by {asked_words(tree)}, {one} and {other} "
        f"stand out {AGAINST}.{silent}"
    )


def _lacking(run: xr.DataTree, other: xr.DataTree) -> list[Claim]:
    """Labels of another run whose claims clearly fail in this run, in the order of heads."""
    own = {_said(claim): claim for claim in all_claims(run)}
    has = {_said(label) for one in head_labels(run).values() for label in one.labels}
    rules = label_rules()

    def lacks(label: Claim) -> bool:
        same = own.get(_said(label))
        below = not rules[label.kind].asks if same is None else same.high < label.low
        return below and _said(label) not in has

    return [label for one in head_labels(other).values() for label in one.labels if lacks(label)]


def _said(claim: Claim) -> tuple[int, int, str, str]:
    return claim.layer, claim.head, claim.kind, claim.name
