"""Sentences on what differs between two models, with numbers.

Do the last layers change most; is it those that learned most; do heads look at other words
afterwards; which labels do they gain or lose?
"""

import math
from collections import Counter

import numpy as np
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
from headscope.claims.reading import Reading, run_findings
from headscope.claims.verdict import SIGNIFICANT, differs
from headscope.core.display import title_name
from headscope.core.intervals import Estimate
from headscope.core.results import (
    at,
    counted,
    derived,
    documents,
    estimate,
    group,
    largest_first,
    shape,
    token_names,
)
from headscope.core.wording import (
    decimals,
    fixed,
    heaviest_first,
    how_many,
    listed,
    number,
    with_ends,
)

LAST = 2
WORDS = {
    "noun": "nouns",
    "verb": "verbs",
    "pronoun": "pronouns",
    "subject": "subjects",
    "object": "objects",
    "negation": "negation",
}
SPECIAL = ("surface.attention.sep", "surface.attention.cls")
SPREAD = "entropy.entropy.all"
OTHERS = ("cls", "sep", "punctuation")
_MEASURES = {
    "gradient_norm": ("Gradients were largest", "layers with larger gradients"),
    "relative_change": ("Weights moved most", "layers whose weights moved farther"),
}


def findings(run: Reading) -> list[str]:
    """All sentences that the results allow, which layers are compared first, then the largest
    changes first; none where both models look untrained.

    A change weighs as a share of what it could be: 1 − cosine, shares of heads, of attention.
    """
    if both_untrained(run.tree):
        return []
    total = math.prod(shape(run.tree))
    weighted = [
        (heads_finding(run), _largest(run, "map_change")),
        (depth_finding(run), 1 - _least(run, "layer_cosine")),
        (training_finding(run), 0.0),  # of how sizes go together, and none itself
        (labels_finding(run), len(_relabelled(run.tree)) / total),
        (sure_finding(run), max(map(sum, sure_counts(run).values()), default=0) / total),
        (words_finding(run), _words_weight(changes(run))),
    ]
    return [*filter(None, [layers_finding(run)]), *heaviest_first(weighted)]


def opening_findings(run: Reading) -> list[str]:
    """The sentences that open the page, shortened; others stand under section headings."""
    beside = {training_finding(run), words_finding(run)}
    sentences = [one for one in run_findings(run.tree) if one not in beside]
    return [f"{one.removesuffix('.').partition('. ')[0]}." for one in sentences]


def changes(run: Reading) -> xr.Dataset:
    """The changes of the heads' numbers; without any where no head has one."""
    return group(run.tree, "change") or xr.Dataset(coords={"quantity": []})


def layers_finding(run: Reading) -> str:
    """Which layers are compared, where the two models number them differently; else ''."""
    tree = run.tree
    if not (first := str(tree.attrs.get("base_layer_numbers", "")).split()):
        return ""
    second, start = run.names.numbers or range(shape(tree)[0]), run.names.first
    pairs = [f"{int(a) + start} against {b + start}" for a, b in zip(first, second, strict=True)]
    return (
        f"Attention stands in other layers in both: layer {', '.join(pairs)}, of "
        f"{base_name(run)} against {tuned_name(run)}; names are those of {tuned_name(run)}."
    )


def heads_finding(run: Reading) -> str:
    """Which head changed most, beside the median one; '' in a run of an older version."""
    if "map_change" not in run.data:
        return ""
    change = run("map_change")
    if not change.value.any():
        return ""
    layer, head = largest_first(change.value)[0]
    half = number(float(np.median(change.value)))
    return (
        f"{run.names.head(layer, head)} changed most of {change.value.size} heads, 1 − cosine of "
        f"its maps {number(*at(change, layer, head))}; half of them by {half} or less."
    )


def map_change(similarity: xr.Dataset, variable: str) -> Estimate:
    """1 − cosine of maps; the interval is turned round."""
    cosine = estimate(similarity, variable).map(lambda part: 1 - part)
    return Estimate(cosine.value, cosine.high, cosine.low)


def depth_finding(run: Reading) -> str:
    """Whether the last layers changed most; '' where there are too few layers to say."""
    if "last_change" not in run.data:
        return ""
    change = 1 - run("layer_cosine").value
    if not change.any():
        return "No map changed: the cosine is 1 in every layer."
    places = np.argsort(-change, kind="stable")[:LAST]
    most = ", then ".join(
        f"layer {run.names.layer(at)} ({with_ends(change[at], math.nan, math.nan, 3)})"
        for at in places.tolist()
    )
    beginning = f"Attention changed most in {most}"
    share = run.mean("last_are_first")
    sure = "" if math.isnan(share) else f", in {fixed(100 * share, 0)} % of corpora drawn anew"
    if set(places.tolist()) == set(range(len(change) - LAST, len(change))):
        beginning += f": the last two layers{sure}"
    else:
        beginning += ": not the last two layers"
    return f"{beginning}. " + run.text(
        "1 − cosine is {last_change} in the last two, {other_change} in those before; difference "
        "{last_minus_other}{apart}.",
        apart=_told_apart(run, run("last_minus_other")),
    )


def training_finding(run: Reading) -> str:
    """Whether the layers that learned most changed most; '' without a record of the training."""
    return " ".join(part for name in _MEASURES if (part := _beside(run, name)))


def sure_finding(run: Reading) -> str:
    """In how many heads attention to special tokens, or its spread, changed significantly."""
    names = token_names(run.tree)
    words = {
        SPECIAL[0]: f"attention to {names['sep'] or 'separators'}",
        SPECIAL[1]: f"attention to {names['cls'] or 'the first token'}",
        SPREAD: "the entropy of attention",
    }
    parts = [
        f"{words[key]} rose in {rose} and fell in {fell}"
        for key, (rose, fell) in sure_counts(run).items()
    ]
    if not parts:
        return ""
    return (
        f"Of {math.prod(shape(run.tree))} heads, by significant changes alone (corrected for all "
        f"heads): {'; '.join(parts)}."
    )


def sure_counts(run: Reading) -> dict[str, tuple[int, int]]:
    """In how many heads attention to special tokens, and its spread, surely rose and fell."""
    change = changes(run)
    there = [key for key in (*SPECIAL, SPREAD) if key in change["quantity"].values]
    rows = {key: change.sel(quantity=key) for key in there}
    return {key: (int(row["rose"]), int(row["fell"])) for key, row in rows.items()}


def words_finding(run: Reading) -> str:
    """Whether attention to kinds of words changes, beside that to special tokens."""
    change = changes(run)
    there = kinds_there(change)
    words = [kind for kind in WORDS if kind in there]
    if not words:
        return ""
    parts = {kind: kind_change(change, kind) for kind in there}
    verdicts = {kind: differs(*at(parts[kind])) for kind in words}
    moved = [kind for kind in words if verdicts[kind].holds]
    kept = [WORDS[kind] for kind in words if kind not in moved]
    sentences = [f"{WORDS[kind]} {points(parts[kind])}" for kind in moved]
    if kept:
        least = max(verdicts[kind].smallest for kind in words if kind not in moved)
        could = f", which could tell {with_ends(100 * least, math.nan, math.nan, 2)}"
        sentences.append(
            f"for {listed(kept)} no difference that {_these(run)} can tell"
            f"{could if math.isfinite(least) else ''}"
        )
    others = [kind for kind in OTHERS if kind in there]
    beside = [f"{kind_name(run, kind)} {points(parts[kind])}" for kind in others]
    tail = f" Beside them: {listed(beside)}." if beside else ""
    return (
        "Attention to kinds of words, change in percentage points, mean over all heads: "
        f"{'; '.join(sentences)}.{tail}"
    )


# --- labels that heads gain or lose from the first model to the second -----------------------


@derived
def label_changes(tree: xr.DataTree) -> dict[str, list[Claim]]:
    """Labels that are lost, and labels that are gained; none without a control.

    Labels of both are compared with the same untrained networks. A label that one model lacks
    is gained or lost only if that model's interval lies wholly below: numbers on both sides of a
    threshold may be the same. Where no such claim is made its number is ordinary, unless claims of
    the kind ask for more (`LabelRule.asks`): then nothing is said.
    """
    if not controls(tree):
        return {}
    base = base_run(tree)
    return {"lost": _lacking(tree, base), "gained": _lacking(base, tree)}


def remarks(run: Reading) -> list[list[str]]:
    """[unit] the labels that each head loses and gains, in words."""
    layers, heads = shape(run.tree)
    words: list[list[str]] = [[] for _ in range(layers * heads)]
    for how, claims in label_changes(run.tree).items():
        for one in claims:
            words[one.layer * heads + one.head].append(f"{how}: {one.label}")
    return words


def labels_finding(run: Reading) -> str:
    """Labels that are lost and gained, by number of heads; '' where the data allow no sentence."""
    parts = []
    for claims in label_changes(run.tree).values() if not unclaimed_words(run.tree) else ():
        names = Counter(one.name for one in claims).most_common()
        counts = "; ".join(f"{name}, {how_many(many, 'head')}" for name, many in names)
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


# --- words of figures and tables --------------------------------------------------------------


def base_name(run: Reading) -> str:
    """The name of the first model."""
    return title_name(str(run.tree.attrs.get("base_model", "the first model")))


def tuned_name(run: Reading) -> str:
    """The name of the second model."""
    return title_name(str(run.tree.attrs.get("model", "the second model")))


def kinds_there(change: xr.Dataset) -> list[str]:
    """The kinds of tokens whose received attention was measured, words first."""
    known = set(change["quantity"].values.tolist())
    kinds = (*WORDS, "punctuation", "cls", "sep")
    return [kind for kind in kinds if f"features.attention.{kind}" in known]


def kind_change(change: xr.Dataset, kind: str) -> Estimate:
    """The difference of attention to a kind, mean over all heads."""
    return estimate(change, "model_difference", quantity=f"features.attention.{kind}")


def kind_name(run: Reading, kind: str) -> str:
    """`nouns`, or what the tokenizer calls its special token."""
    return WORDS.get(kind) or run.special(kind)


def points(parts: Estimate) -> str:
    """A difference of shares in percentage points: `+0.31 [0.22, 0.41]`."""
    value, low, high = (100 * part for part in at(parts))
    # An interval without 0 is not written with a 0 at its end.
    digits = decimals(2, min(abs(low), abs(high))) if differs(value, low, high).holds else 2
    return f"{'+' if value > 0 else ''}{with_ends(value, low, high, digits)}"


def chance_text(p: float) -> str:
    """`p = 0.017`, or `p < 0.001`."""
    return "p < 0.001" if p < 0.0005 else f"p = {fixed(p, 3)}"


def _beside(run: Reading, name: str) -> str:
    if f"{name}_correlation" not in run.data:
        return ""
    values, p = run(name).value, run.mean(f"{name}_p")
    rho, low, high = at(run(f"{name}_correlation"))
    if math.isnan(rho):
        return ""
    beginning, these = _MEASURES[name]
    if p > SIGNIFICANT:
        verdict = f"whether {these} change more or less, so few layers cannot tell"
    else:
        verdict = f"{these} change {'more' if rho > 0 else 'less'}"
    most = run.names.layer(int(np.argmax(values)))
    return (
        f"{beginning} in layer {most}; rank correlation with 1 − cosine over {len(values)} layers "
        f"{with_ends(rho, low, high, 2)}, {chance_text(p)}: {verdict}."
    )


def _largest(run: Reading, name: str) -> float:
    return float(np.nanmax(run(name).value)) if name in run.data else math.nan


def _least(run: Reading, name: str) -> float:
    return float(np.nanmin(run(name).value))


def _relabelled(tree: xr.DataTree) -> set[tuple[int, int]]:
    """The heads that surely lose or gain a label."""
    return {(one.layer, one.head) for claims in label_changes(tree).values() for one in claims}


def _words_weight(change: xr.Dataset) -> float:
    """The largest sure change of attention to a kind of words, a share."""
    parts = [at(kind_change(change, kind)) for kind in kinds_there(change) if kind in WORDS]
    return max((abs(one[0]) for one in parts if differs(*one).holds), default=0.0)


def _these(run: Reading) -> str:
    return f"these {documents(run.tree):,} {counted(run.tree)}"


def _told_apart(run: Reading, parts: Estimate) -> str:
    verdict = differs(*at(parts))
    if verdict.holds or not math.isfinite(verdict.smallest):
        return ""
    return f", none that {_these(run)} can tell; they could tell {number(verdict.smallest)}"
