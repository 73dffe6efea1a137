"""A claim about one head, its effect, and how telling it is.

The effect is how far the head lies above an ordinary one, as a share of how far it could:

    effect = (lower end of the interval − reference) / (ceiling − reference)

Without an interval the value itself stands in for its lower end: such a claim may be the one that
comes closest to a label, and is never a label.

How telling a label is, is another number: its surprise, in bits,

    surprise = log2(heads / heads with a label of its kind) + D(lower end ‖ reference)

where D is the relative entropy of the two shares (Kullback and Leibler 1951), and the reference is
here the largest head of the control where that lies above the claim's own. What most heads do, or
heads without training, surprises nobody.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from headscope.core.intervals import Estimate
from headscope.core.results import Floats, surely
from headscope.core.wording import percent

LEAST_EFFECT = 0.05  # ours: below, a head counts as ordinary
LEAST_DEPARTURE = 0.01  # ours: a sample of the inputs moves numbers of the control by less


@dataclass(frozen=True, slots=True)
class Claim:  # noqa: PLW1641  (dataclass makes the hash)
    """One statement about one head.

    kind       which rule applies
    effect     see the module; at most 1
    name       without numbers: "previous token", "direct object → verb"
    label      with them: "previous token 87 % [85, 89]"
    sentence   without the head's name: "attends to the previous token, 87 % [85, 89]"
    value, low, high   the number behind it, as a share of the ceiling, 0 to 1
    reference  on the same scale: what is ordinary, a baseline, or chance
    n          documents behind it
    analysis   the group that holds the number
    about      of a claim about one: the relation, the kind of mention, the tokens of a sink
    replaces   kind of claim about the same head that this one says better
    brief      for where there is little room, instead of the name
    counted    whether its number is added there
    control    largest value of such a claim about a head of the run's control, see
               `head_labels.all_claims`; NaN without any
    surprise   of a label, in bits; see the module
    verdict    of a label that was tried: `confirmed`, `not confirmed` or `untestable`; else ""
    sign       of that verdict
    where      of a label, the lengths of the inputs that it is of: `up to 32 tokens`; "" for all
    """

    layer: int
    head: int
    kind: str
    effect: float
    name: str
    label: str
    sentence: str
    value: float
    low: float
    high: float
    reference: float
    n: int
    analysis: str
    about: str = ""
    replaces: str = ""
    brief: str = ""
    counted: bool = True
    control: float = math.nan
    surprise: float = math.nan
    where: str = ""
    verdict: str = ""
    sign: str = ""

    def __eq__(self, other: object) -> bool:
        """Absent numbers are alike, as they were before Python 3.13."""
        names = [field.name for field in fields(self)]
        return isinstance(other, Claim) and (
            [getattr(self, name) for name in names] == [getattr(other, name) for name in names]
        )

    @property
    def departs(self) -> bool:
        """Whether its number lies above that of every head of the control, by LEAST_DEPARTURE."""
        return not self.surely <= self.control + LEAST_DEPARTURE

    @property
    def surely(self) -> float:
        """The lower end of the interval; the value where there is none."""
        return self.low if math.isfinite(self.low) else self.value

    @property
    def departure(self) -> float:
        """Bits by which the lower end departs from the reference; 0 where it is not above it.

        A reference is taken to be no nearer to 0 and 1 than LEAST_DEPARTURE.
        """
        from scipy.special import rel_entr  # not for who reads arguments only

        least = np.fmax(self.reference, self.control)  # fmax knows nothing of NaN
        least = min(max(float(least), LEAST_DEPARTURE), 1 - LEAST_DEPARTURE)
        share = min(max(self.surely, least), 1.0)
        nats = rel_entr(share, least) + rel_entr(1 - share, 1 - least)
        return float(nats) / math.log(2)

    @property
    def row(self) -> dict[str, Any]:
        """The claim for tables and programs; label is without numbers, text with them."""
        return {
            "kind": self.kind,
            "label": self.name,
            "text": self.label,
            "sentence": self.sentence,
            "value": self.value,
            "ci_low": self.low,
            "ci_high": self.high,
            "reference": self.reference,
            "effect": self.effect,
            "n": self.n,
            "analysis": self.analysis,
            "where": self.where,
            "verdict": self.verdict,
        }

    @property
    def short(self) -> str:
        """For where there is little room: `previous token 87 %`, `sink on [SEP] 80 %`."""
        name, where = self.brief or self.name.removeprefix("attention "), self.where
        words = f"{name} {percent(self.value)}" if self.counted else name
        words = f"{words}, {where}" if where else words
        return f"{words} {self.sign}" if self.sign else words

    def tried(self, verdict: str, sign: str, words: str) -> "Claim":
        """The same with the verdict of its trial; `words` are those in a sentence."""
        label, sentence = f"{self.label} {sign} {verdict}", f"{self.sentence}; {words}"
        return replace(self, label=label, sentence=sentence, verdict=verdict, sign=sign)

    def only(self, where: str) -> "Claim":
        """The same, said of inputs of some lengths alone."""
        kept = "not " * where.startswith("not ")
        return replace(
            self,
            label=f"{self.label}, {where}",
            where=where,
            sentence=f"{self.sentence}, {kept}in inputs of {where.removeprefix(kept)}",
        )


def effects(share: Estimate, reference: Floats | float) -> Floats:
    """The effect of every cell, for a ceiling of 1; NaN without a value, 0 for no room above."""
    way = 1 - np.asarray(reference)
    above = np.where(way > 0, surely(share) - reference, 0) / np.where(way > 0, way, 1)
    return np.asarray(np.where(np.isfinite(share.value), above, np.nan))


def rank(claim: Claim) -> tuple[float, int, int, str, str]:
    """Sorts claims: the largest effect first, then by head, kind and name, whatever comes first."""
    return (-claim.effect, claim.layer, claim.head, claim.kind, claim.name)
