"""What a head finds of one thing beyond what it finds anyway: the specific against the general.

A head that looks at the verb from everywhere finds the verb of a direct object too. So the share of
a relation, or of any kind, is compared with a reference: the largest share of rules that know
nothing of it, such as a fixed offset, or the same head on words that do not stand in it.

Each head is judged by itself, whatever other heads do. That many are looked at makes the intervals
longer: as long as holds for all heads and kinds at once, by Bonferroni, with the distance from the
value stretched as that of a normal would be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.claims.claim import LEAST_EFFECT, Claim, effects
from headscope.claims.reading import Reading
from headscope.core.accumulators import Bools, Float64, Ints
from headscope.core.confidence import stretch
from headscope.core.intervals import (
    DIFFERENCE,
    ROUNDING,
    Estimate,
    estimate_difference,
)
from headscope.core.intervals import estimate as estimate_mean
from headscope.core.results import Variable, at, estimate
from headscope.core.wording import percent

REFERENCE, ABOVE, WEIGHT = "reference", "above_reference", "weight_above"
LEAST_ABOVE = 0.1  # ours: of what is left above the reference; nearer to it, a head is ordinary
SPECIFIC = (
    "surely above {rivals}, by 5 points and a tenth of what is left above them, for all heads and "
    "{cells} at once"
)


def against_rivals(
    share: Float64,
    rivals: Sequence[Float64],
    dims: Sequence[str],
    words: str,
    *,
    questions: Float64 | None = None,
    sizes: Float64 | None = None,
    end: str = "",
) -> dict[str, Variable]:
    """`reference`, the largest rival on all data, and `above_reference`, by how much it is beaten.

    share   [replicate + 1, *cell] draws
    rivals  likewise, broadcast to them
    words   what the reference is
    questions  draws of how many questions a share is of; None: the number is a mean, and
    sizes   draws of what it is a mean over
    end     of the names
    """
    reference, beyond = _beyond(share, rivals)
    above = (
        estimate_mean(beyond, bounds=DIFFERENCE, sizes=sizes)
        if questions is None
        else estimate_difference(beyond, questions)
    )
    long_name = f"share less the reference, {words}"
    return {
        REFERENCE + end: Variable(reference[0], dims, words, "1", "ours", tidy=False),
        ABOVE + end: Variable(above, dims, long_name, "1", "ours", tidy=False),
    }


def weight_above(beyond: Float64, dims: Sequence[str], *, sizes: Float64) -> dict[str, Variable]:
    """`weight_above`: how much more attention the right word gets than words beside give it.

    Where several words get the same from everywhere each of these finds the next, as no word is
    tested on itself, and those beside find any.

    beyond  [replicate + 1, *cell] draws of means
    sizes   draws of what they are means over
    """
    words = "attention to the right word less that from words beside, mean"
    above = estimate_mean(beyond, bounds=DIFFERENCE, sizes=sizes)
    return {WEIGHT: Variable(above, dims, words, "probability", "ours", tidy=False)}


def _beyond(share: Float64, rivals: Sequence[Float64]) -> tuple[Float64, Float64]:
    """Draws of the rival that is the largest on all data, and of the share less that."""
    reference, *others = (np.broadcast_to(rival, share.shape) for rival in rivals)
    for other in others:
        larger = other[0] > reference[0] + ROUNDING  # of equals the first, however they are read
        reference = np.where(larger, other, reference)
    beyond = share - reference
    return reference, np.where(np.abs(beyond) <= ROUNDING, 0, beyond)


@dataclass(frozen=True, slots=True)
class SpecificHead:
    """A head that is surely above its reference at something.

    kind, name  of the claim
    cell    which, by the indices behind layer and head
    ends    its share and the interval, corrected for all that was looked at
    effect  how far the lower end is above the reference, see `claims.claim`
    """

    layer: int
    head: int
    kind: str
    name: str
    cell: tuple[int, ...]
    ends: tuple[float, float, float]
    reference: float
    effect: float

    @property
    def percent(self) -> str:
        """The share with its interval, in words."""
        return percent(*self.ends)

    def claim(
        self,
        sentence: str,
        *,
        n: int,
        analysis: str,
        about: str = "",
        label: str = "",
        brief: str = "",
    ) -> Claim:
        """What is said of the head; the sentence is the label, too, where there is none."""
        return Claim(
            self.layer,
            self.head,
            self.kind,
            self.effect,
            self.name,
            label or sentence,
            sentence,
            *self.ends,
            self.reference,
            n,
            analysis,
            about,
            brief=brief,
        )


def specific_heads(
    run: Reading,
    dataset: xr.Dataset,
    variable: str,
    kind: str,
    names: Sequence[str],
    *,
    tests: int,
    end: str = "",
) -> Iterator[SpecificHead]:
    """All heads above their reference, by more than the data and a margin leave open.

    Of a head that is not, but asked about, the lower end is not above the reference either.

    dataset  the numbers of the run, or some cells of them: the share `variable`, `reference` and
             `above_reference` [layer, head, *cell]; where there is `weight_above`, heads are left
             out that hardly attend to what they find
    names    of the claims, cell by cell
    tests    heads and cells that are looked at
    end      of their names
    """
    if not tests:  # of a band of inputs, say, in which there is too little of anything
        return
    numbers = (variable + end, ABOVE + end)
    share, above = (corrected(estimate(dataset, number), tests) for number in numbers)
    share = Estimate(share.value, np.maximum(share.low, 0), np.minimum(share.high, 1))
    reference = dataset[REFERENCE + end].values
    least = np.maximum(LEAST_EFFECT, LEAST_ABOVE * (1 - reference))
    effect = effects(share, reference)
    sure = (above.low > least) & np.isfinite(share.low)
    if WEIGHT in dataset:
        sure &= corrected(estimate(dataset, WEIGHT), tests).low > LEAST_EFFECT
    low = np.where(sure, share.low, np.minimum(share.low, reference))
    share, cells = Estimate(share.value, low, share.high), sure.shape[2:]
    name_of, wanted = dict(zip(np.ndindex(cells), names, strict=True)), np.isfinite(low)
    for cell, name in name_of.items():
        wanted[..., *cell] &= run.wanted(sure[..., *cell], kind, name)
    for layer, head, *places in np.argwhere(wanted).tolist():
        here, of = (layer, head, *places), tuple(places)
        rest = float(reference[here]), float(effect[here])
        yield SpecificHead(layer, head, kind, name_of[of], of, at(share, *here), *rest)


def corrected(parts: Estimate, tests: int) -> Estimate:
    """The same with the interval of the largest of them."""
    value, longer = parts.value, stretch(max(tests, 1))
    return Estimate(value, *(value + longer * (end - value) for end in (parts.low, parts.high)))


def by_norm(dataset: xr.Dataset) -> str:
    """What follows a number that is not by attention."""
    return " (weighted norm)" if dataset.attrs.get("measure") == "weighted_norm" else ""


def words_beside(of: Ints, places: Ints, usable: Bools, goal: Bools) -> Ints:
    """[word, 2] the nearest usable places before and after each word.

    One beyond a goal of the word counts only where the other is none or beyond one, too. Twice the
    same where there is one, and the word itself where there is none: it is no better than itself.

    of      [word] where the words are
    places  [place] ascending
    usable  [word, place] which of them may be taken
    goal    [word, place] which are what the word is to find
    """
    at, least, most = of[:, None], np.iinfo(np.int64).min, np.iinfo(np.int64).max
    before, goal_before = (
        np.where(part & (places < at), places, least).max(1, initial=least)
        for part in (usable, goal)
    )
    after, goal_after = (
        np.where(part & (places > at), places, most).min(1, initial=most) for part in (usable, goal)
    )
    both = np.stack([before, after], 1)  # [word, 2]
    there = np.stack([before > least, after < most], 1)
    near = there & np.stack([before > goal_before, after < goal_after], 1)
    taken = np.where(near.any(1, keepdims=True), near, there)
    one = np.where(taken[:, 0], before, np.where(taken[:, 1], after, of))
    return np.where(taken, both, one[:, None])
