"""Claims about the class of a head's maps.

A claim is about the class that most of a head's maps belong to, by the classifier behind the group
`patterns`. The class that takes what the others leave tells nothing of a head, and is never
claimed; nor is anything of maps that the classifier is not sure of.
"""

from functools import partial

from headscope.analyses.patterns import CLASSES
from headscope.claims.plan import ClaimPlan, LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import KOVALEVA, OURS
from headscope.core.accumulators import Bools
from headscope.core.intervals import Estimate
from headscope.core.results import surely

CLASS_SHARE = 0.5  # ours: of a head's maps
CLASS_SURE = 0.5  # ours: mean probability that the classifier gives to the class that it says
NAMED = {one.name: one.title.lower() for one in (CLASSES[3], *CLASSES[:3])}  # in a claim
LOOKS = {
    "block": "squares on the diagonal: attention stays within the own sentence",
    "vertical": "mainly columns: many tokens attend to the same special tokens or punctuation",
    "diagonal": "a line along the diagonal: attention goes to near tokens",
    "vertical_diagonal": "a line along the diagonal, and columns of special tokens or punctuation",
}
LOOKS_OF_ANY = LOOKS | {
    "block": "squares on the diagonal: attention stays within a part of the input",
    "vertical": "columns: all tokens attend to the same few",
    "vertical_diagonal": "a line along the diagonal, and columns",
}  # with columns=any, and in runs of before the option


def _looks(kind: str, run: Reading) -> list[dict[str, str]]:
    looks = LOOKS if run.data.attrs.get("columns") == "special" else LOOKS_OF_ANY
    return [{"pattern": kind, "looks": looks[kind]}]


def _sure(run: Reading, share: Estimate, **choice: str) -> Bools:
    return surely(run("confidence")) > CLASS_SURE


CLAIMS = tuple(
    ClaimPlan(
        kind=kind,
        rule=LabelRule(
            name,
            number="maps of the class",
            least=CLASS_SHARE,
            source=f"{OURS}; classes of {KOVALEVA}, §4.1",
            asks=f"the classifier's mean probability for the class that it chooses is above "
            f"{CLASS_SURE:g}",
            last=kind != "block",  # how the maps look says least of a head
        ),
        share="share",
        each=partial(_looks, kind),
        where=_sure,
        label=f"{name}: {{share:%}} of maps",
        sentence="{share:%} of its maps show {looks}",
    )
    for kind, name in NAMED.items()
)
