"""Where heads attend and how widely, read from the results of a run.

Several questions need these results, which others share (`Question.shares`). They are read here, so
that no analysis needs to know another. Absent results are None, or NaN throughout.

The thresholds on mean attention and entropy are those of Clark et al. (2019), section 6. We differ
in three points: `broad` is relative to uniform attention, because 3.8 nats suppose 128 tokens;
decoders without [CLS] have `first`; and the lower end of an interval must lie above the threshold.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.claims.question import questions
from headscope.claims.terms import CLARK, OURS
from headscope.core.accumulators import ratio
from headscope.core.intervals import Estimate
from headscope.core.results import Floats, documents, estimate, group, token_names

SPECIALS = ("cls", "sep", "special")
POSITION = 0.5  # Clark's notebook: positions
SPECIAL = 0.6  # Clark's notebook: [CLS], [SEP], punctuation


@dataclass(frozen=True)
class Target:
    """A target of attention; its key in TARGETS is the word of the data.

    name    what a label calls it
    goal    what a sentence calls it
    offset  of a position: how many tokens on; None for kinds of tokens
    least   the share from which a head is named after it
    source  of that threshold
    number  what is compared with it; `attention to` the goal by default
    """

    name: str
    goal: str
    offset: int | None = None
    least: float = SPECIAL
    source: str = f"{CLARK}, §6"
    number: str = ""


SELF, PREVIOUS, NEXT = "self", "previous", "next"
TARGETS = {
    SELF: Target(
        "token itself",
        "the token itself",
        0,
        POSITION,
        f"{OURS}, as for a position",
        "attention of tokens to themselves",
    ),
    PREVIOUS: Target("previous token", "the previous token", -1, POSITION),
    NEXT: Target("next token", "the next token", 1, POSITION),
    "first": Target("first token", "the first token", source=f"{OURS}, as for [CLS]"),
    "cls": Target("[CLS]", "[CLS]"),
    "sep": Target("[SEP]", "[SEP]"),
    "punctuation": Target("punctuation", "full stops and commas"),
}
OFFSETS = {name: one.offset for name, one in TARGETS.items() if one.offset is not None}
NEIGHBOURS = tuple(name for name, offset in OFFSETS.items() if offset)  # the token before, after
WORD_KINDS = ("own_segment", "other_segment", "same_token")  # what a word can attend to
SHARED_PART = 0.25  # ours: of the weight that [CLS] and [SEP] share, what either has at least
PLACES = {"cls": "the opening token", "sep": "the separator"}

BROAD_SHARE = 0.9  # ours: of the uniform entropy


def shared(tree: xr.DataTree, variable: str) -> xr.Dataset | None:
    """The results that hold a variable which a question shares; None where the run has none."""
    owner = next((one.name for one in questions() if variable in one.shares), "")
    return group(tree, owner)


def attention_to(tree: xr.DataTree, target: str) -> Estimate | None:
    """[layer, head] share of attention to a target; None if not measured.

    `special` stands for [CLS] and [SEP] together, where they share the attention: NaN elsewhere.
    """
    surface = shared(tree, "attention")
    if surface is None:
        return None
    if target != "special":
        return estimate(surface, "attention", target=target)
    cls, sep = (estimate(surface, "attention", target=one) for one in ("cls", "sep"))
    both = added(cls, sep).map(lambda part: np.minimum(part, 1.0))
    divided = np.minimum(cls.value, sep.value) >= SHARED_PART * both.value
    return both.map(lambda part: np.where(divided, part, np.nan))


def norm_share(tree: xr.DataTree, category: str) -> Estimate | None:
    """[layer, head] share of a category in the sum of norms ‖αf(x)‖ over all categories.

    returns  None where it was not measured, NaN of a head that adds nothing; the ends of the
             interval are those of the category against the other ends of the rest: never too narrow
    """
    norms = shared(tree, "weighted_norm")
    if norms is None or category not in norms["category"].values:
        return None
    own = estimate(norms, "weighted_norm", category=category)
    every = estimate(norms, "weighted_norm").map(lambda part: np.nansum(part, -1))
    low, high = every.low - own.low, every.high - own.high  # of the rest
    ends = ratio(own.low, own.low + high), ratio(own.high, own.high + low)
    return Estimate(ratio(own.value, every.value), *ends)


def ordinary_attention(tree: xr.DataTree, target: str) -> float:
    """The mean share of attention to a target over heads; for `special`, over all heads."""
    kinds = ("cls", "sep") if target == "special" else (target,)
    shares = [attention_to(tree, kind) for kind in kinds]
    return sum(float(np.nanmean(share.value)) for share in shares if share is not None)


def attention_documents(tree: xr.DataTree) -> int:
    """The documents behind `attention_to`."""
    surface = shared(tree, "attention")
    return documents(tree, None if surface is None else surface["attention"])


def spread(tree: xr.DataTree) -> tuple[Estimate | None, float]:
    """[layer, head] entropy over all queries, and that of uniform attention, in nats."""
    entropy = shared(tree, "entropy")
    if entropy is None or not float(entropy["uniform"]) > 0:
        return None, float("nan")
    return estimate(entropy, "entropy", query="all"), float(entropy["uniform"])


def relative_spread(tree: xr.DataTree) -> Estimate | None:
    """[layer, head] entropy over that of uniform attention, with the interval of the ratio."""
    entropy = shared(tree, "entropy")
    if entropy is None or not float(entropy["uniform"]) > 0:
        return None
    if "relative_entropy" not in entropy:  # an old run
        uniform = float(entropy["uniform"])
        return estimate(entropy, "entropy", query="all").map(lambda part: part / uniform)
    return estimate(entropy, "relative_entropy", query="all")


def uniform_share(tree: xr.DataTree) -> float:
    """The share of one token under uniform attention: about exp(−mean ln n); 0 if unknown."""
    entropy = shared(tree, "entropy")
    return 0.0 if entropy is None else float(np.exp(-float(entropy["uniform"])))


def has_cls(tree: xr.DataTree) -> bool:
    """Whether inputs begin with a classification token."""
    share = attention_to(tree, "cls")
    if share is None:
        return bool(tree.attrs.get("cls_token", ""))
    return bool(np.isfinite(share.value).any())


def special_name(tree: xr.DataTree, kind: str, *, otherwise: Mapping[str, str] = PLACES) -> str:
    """The tokenizer's name for one of SPECIALS, else the name of `otherwise`."""
    names = {part: token_names(tree)[part] or otherwise[part] for part in ("cls", "sep")}
    return names.get(kind) or f"{names['cls']} and {names['sep']}"


def added(one: Estimate, other: Estimate) -> Estimate:
    """The sum of two estimates; its interval adds the ends, so it is conservative."""
    return Estimate(one.value + other.value, one.low + other.low, one.high + other.high)


def map_shares(
    maps: npt.NDArray[np.floating], queries: Floats, kinds: Mapping[str, npt.NDArray[np.bool_]]
) -> dict[str, Floats]:
    """Target -> […] the mean attention to it within maps.

    maps     […, query, key]
    queries  [query] the weight of each; they sum to 1
    kinds    target -> [token] which tokens are of the kind
    """
    parts = maps * queries[:, None]  # […, query, key]
    received = parts.sum(-2)  # […, key]
    shares = {name: parts.diagonal(by, -2, -1).sum(-1) for name, by in OFFSETS.items()}
    shares |= {"first": received[..., 0]}
    return shares | {kind: received[..., tokens].sum(-1) for kind, tokens in kinds.items()}


def map_entropy(maps: npt.NDArray[np.floating], queries: Floats) -> Floats:
    """[…] the mean entropy of maps […, query, key] in nats; the weights of queries sum to 1."""
    weights = maps.astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.asarray(-(weights * logs).sum(-1) @ queries)
