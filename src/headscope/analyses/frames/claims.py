"""Claims about the heads that link frame elements and targets; the label rule."""

from headscope.analyses.language.specific import SPECIFIC, specific_heads
from headscope.claims.claim import Claim
from headscope.claims.head_metrics import HeadMetric
from headscope.claims.plan import LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import KOVALEVA, OURS
from headscope.core.wording import percent

BESIDE = ("distribution", "score_quantile", "chance", "p_value")  # they go with a score
WORDS = {"": "frame element → target", "_reversed": "target → frame element"}
LEAST_SENTENCES = 25  # ours
LOOKS = {"": "the word that evokes its frame", "_reversed": "the elements of its frame"}
RULES = {
    "frames": LabelRule(
        "frames",
        number="largest attention between frame element and target",
        least=0.0,
        source=f"{OURS}, after {KOVALEVA}, §4.2",
        words=True,
        asks=SPECIFIC.format(
            rivals="chance, and what words beside the one give to the other", cells="directions"
        )
        + f"; {LEAST_SENTENCES} sentences or more",
        predicts=lambda claim: next(LOOKS[end] for end in WORDS if WORDS[end] == claim.name),
    ),
}


def claims(run: Reading) -> list[Claim]:
    """One claim per head and direction of a score that neither chance nor words beside give.

    None by weighted norm: it has no ceiling, so an effect would be on no common scale.
    """
    dataset = run.data
    if "reference" not in dataset or dataset["sentences"] < LEAST_SENTENCES:
        return []
    n, made = run.documents("score"), []
    for end, words in WORDS.items():
        for one in specific_heads(
            run, dataset, "score", "frames", [words], tests=2 * dataset["score"].size, end=end
        ):
            ordinary = percent(one.reference)
            sentence = f"{words}, {one.percent} of its attention, ordinary {ordinary}"
            made.append(one.claim(sentence, n=n, analysis="frames"))
    return made


def metrics(run: Reading, variable: str) -> list[HeadMetric] | None:
    """None, as usual; no numbers of their own for what goes with a score."""
    return [] if variable.removesuffix("_reversed") in BESIDE else None
