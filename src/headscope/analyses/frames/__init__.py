"""The question frames: which head links a frame element to the word that evokes the frame?"""

from headscope.analyses.language import MEASURE
from headscope.claims.plan import PicturePlan
from headscope.claims.question import Option, Question, some
from headscope.claims.terms import KOVALEVA, OURS, terms_of

QUESTION = Question(
    name="frames",
    package=__name__,
    title="Frames",
    place=120,
    predicts="rules:RULES",
    measure="measure:Frames",
    summary="which head links frame elements and the word that evokes the frame",
    source="Kovaleva et al. 2019, §4.2",
    needs=frozenset({"attention", "frames"}),
    options={
        "pairing": Option("product", ("product", "zip")),
        "measure": MEASURE,
        "permutations": Option(200, check_value=some),
        "statistic": Option("standardised", ("standardised", "score")),
    },
    figures=(
        PicturePlan(
            name="frames",
            title="Heads and frames",
            panels="figure:panels",
            caption="figure:caption",
            columns=3,
        ),
    ),
    terms={
        **terms_of(
            f"{KOVALEVA}, §4.2",
            {
                "frames": (
                    "frames",
                    "A word that evokes a frame (the target: “pitied”) and its frame elements, "
                    "the words that fill the frame’s roles (who, whom); a head’s score is its "
                    "largest attention from a core frame element to the target, or back, mean "
                    "over sentences.",
                ),
                "score": (
                    "score of a frame head",
                    "The largest attention from a frame element to the word that evokes the "
                    "frame, over the links of a sentence, mean over sentences; reversed: from "
                    "that word to the element.",
                ),
            },
        ),
        **terms_of(
            OURS,
            {
                "chance": (
                    "chance",
                    "What a head’s score is when frame element and target are moved, "
                    "at their distance, to random words of the sentence.",
                ),
                "p_value": (
                    "p",
                    "Share of random moves of all frame elements and targets after which any head "
                    "stands as far above its own chance, in standard deviations, as this head "
                    "does on the true ones.",
                ),
            },
        ),
    },
    labels={
        "score": "frame element to target",
        "score_reversed": "target to frame element",
        "chance": "chance, frame element to target",
        "chance_reversed": "chance, target to frame element",
        "p_value": "p, frame element to target",
        "p_value_reversed": "p, target to frame element",
        "distribution": "sentences, frame element to target",
        "score_quantile": "quantile of sentences, frame element to target",
    },
    claims="claims:claims",
    rules="claims:RULES",
    metrics="claims:metrics",
    section="figure:SECTIONS",
    tables="figure:tables",
)
