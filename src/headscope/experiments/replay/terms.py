"""Terms and wording of the results on replayed heads."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.claims.terms import OURS, Term
from headscope.core.head_names import HeadNames
from headscope.core.wording import decimals, fixed

TERMS = {
    "replay": Term(
        "replay",
        "The model runs with the attention of some heads replaced by rows that are made of the "
        "input alone, say by the rules that predict where these heads look; what they take from "
        "tokens (their values) stays their own.",
        OURS,
    ),
    "perplexity": Term(
        "perplexity",
        "The exponential of the mean loss per predicted token: among how many equally likely "
        "tokens the model is as unsure.",
        OURS,
    ),
    "mean_map": Term(
        "mean map by relative position",
        "A head’s mean attention by how far the key lies from the query, over other documents; in "
        "each row scaled to sum to 1 over the tokens that the query may attend to.",
        OURS,
    ),
    "even": Term(
        "even attention",
        "The same share to every token that the query may attend to.",
        OURS,
    ),
}
LABELS = {
    ("change", "rules"): "change of the output, heads replaced by their rules",
    "change": "change of the output, heads replaced: {choice}",
}
NAMES = {
    "rules": "their rules",
    "your_rules": "your rules",
    "rest": "their rest alone",
    "mean_map": "their mean map by position",
    "even": "even attention",
    "another_head": "the rules of another head",
}
WEIGHTED = ("rules", "another_head")  # whose weights may be fitted
ORDERS = {"random": "drawn at random", "chosen": "those that were named"}
FIRST = {
    "output": "those whose output rules change least",
    "alone": "those whose rules move the output least, one head at a time",
    "gathering": "those explained best in what they gather",
    "attention": "those whose attention is explained best",
}
LARGE = 1e5  # per cent, beyond which nobody reads the number
NAMED = 4  # heads that a sentence names


def replacement_name(name: str, replay: xr.Dataset) -> str:
    """A replacement in running text; of a single head `its rules`."""
    words = NAMES.get(name, name.replace("_", " "))
    words += " with fitted weights" * (name in WEIGHTED and fitted(replay))
    one = "chosen" in replay["order"].values and float(replay["replaced"].sum()) == 1
    return words.replace("their ", "its ") if one else words


def order_name(replay: xr.Dataset, order: str) -> str:
    """Which heads come first in an order, in running text."""
    return ORDERS.get(order) or FIRST[str(replay.attrs["ordered_by"])]


def units_of(replay: xr.Dataset) -> str:
    """What intervals are over: `7 documents`; of fewer than were wanted, `8 inputs`."""
    return f"{replay.attrs['units']} {replay.attrs.get('units_are', 'documents')}"


@dataclass(frozen=True)
class Compared:
    """How to speak of what is compared.

    moves  what the output does, before a number; after: of what the number is a share
    title  of a panel; unit: of its axis
    what   in a caption, before who is replaced; cells: in that of a table
    """

    moves: str
    after: str
    title: str
    unit: str
    what: str
    cells: str


LOSS = Compared(
    "the perplexity rises by",
    "",
    "Rise of the perplexity",
    "rise of the perplexity",
    "By how much the perplexity rises ({score}; whole model {baseline} nats) ",
    "Change of the perplexity in per cent; of the whole model it is {perplexity}",
)
COMPARED = {
    "vectors": Compared(
        "the output vectors move by",
        " of the distance between two inputs",
        "Distance of the tokens’ vectors",
        "share of two inputs’ distance",
        "How far the output vectors move: 1 − cosine with those of the whole model, as a share of "
        "that between two inputs (100 %: as far apart as two texts), for each token (a) and for "
        "the mean of an input’s vectors (b), ",
        "Distance of the tokens’ vectors from those of the whole model, in per cent of that of two "
        "inputs",
    ),
    "answers": Compared(
        "the answers diverge by",
        " of the divergence between two inputs",
        "Divergence of the answers",
        "share of two inputs’ divergence",
        "How far the answers move: divergence (KL) of the probabilities of the classes from those "
        "of the whole model, as a share of that between two inputs (100 %: as far apart as the "
        "answers to two texts; these are {baseline} nats), ",
        "Divergence of the answers from those of the whole model, in per cent of that of two "
        "inputs",
    ),
}


def compared(replay: xr.Dataset) -> Compared:
    """How to speak of what a replay compares."""
    return COMPARED.get(str(replay.attrs["kind"]), LOSS)


def fitted(replay: xr.Dataset) -> bool:
    """Whether the weights of rules are fitted to the output."""
    return str(replay.attrs.get("weights_by")) == "output"


def weights_from(replay: xr.Dataset) -> str:
    """What fitted weights are fitted to, in a sentence; "" where none is."""
    where = f"on other {replay.attrs.get('units_are', 'documents')}"
    return f"Weights were fitted to the whole model’s output, {where}." * fitted(replay)


def of_loss(replay: xr.Dataset) -> bool:
    """Whether losses were compared, and not vectors or answers."""
    return compared(replay) is LOSS


def atlas_notes(chosen_on: str) -> list[str]:
    """What is doubtful where the rules are those of an atlas, see `AtlasRules.chosen_on`."""
    words = {
        "possible": "the atlas read the same texts: inputs that try the rules here may have chosen "
        "them there, and rules may look better than on other texts",
        "unknown": "whether inputs that try the rules here chose them in the atlas is not known",
    }
    return [words[chosen_on]] if chosen_on in words else []


def rules_from(replay: xr.Dataset) -> str:
    """Where rules, their weights and the order come from, in sentences."""
    others = f"other {replay.attrs.get('units_are', 'documents')}"
    if str(replay.attrs.get("rules_of")) != "atlas":
        said = f"Rules and order are those of {others}."
    else:
        files = " of other files" * (str(replay.attrs["chosen_on_tried"]) == "no")
        said = f"Rules are those of an atlas{files}, the order is that of {others}."
    return f"{said} {weights_from(replay)}".rstrip()


def share_text(share: float) -> str:
    """A share of heads: `25 %`."""
    return f"{100 * share:.3g} %"


def change_text(value: float, low: float, high: float, *, signed: bool = False) -> str:
    """A relative change in percent with its interval: `9 % [7, 12]`, `2,900 % [2,100, 4,000]`."""
    ends = [100 * one for one in (value, low, high)]
    if not math.isfinite(ends[0]):
        return "beyond measure"
    plus = "+" if signed and value > 0 else ""
    size = abs(ends[0])
    digits = decimals(2 if size < 1 else 1, *ends) if size < 10 else 0
    text = f"{plus}{_large(ends[0], digits)} %"
    if not math.isfinite(low):
        return text
    return f"{text} [{', '.join(_large(end, digits) for end in ends[1:])}]"


def _large(percent: float, digits: int) -> str:
    if not math.isfinite(percent) or percent >= LARGE:
        return f"above {LARGE:,.0f}"
    return f"{percent:,.0f}" if percent >= 1000 else fixed(percent, digits)


def heads_in(replay: xr.Dataset, names: HeadNames, row: int) -> list[str]:
    """The names of the heads of a set."""
    there = replay["replaced"].isel(set=row).transpose("layer", "head").values > 0
    return [names.head(int(layer), int(head)) for layer, head in np.argwhere(there)]


def some_heads(names: list[str]) -> str:
    """`L3·H9 and L5·H2`; of many the first."""
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
