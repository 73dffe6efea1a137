"""The question patterns: of which class are a head's maps?"""

from dataclasses import dataclass
from typing import Any

from headscope.claims.plan import DrawnPanel, PicturePlan
from headscope.claims.question import Option, Question, some
from headscope.claims.terms import KOVALEVA, OURS, Term
from headscope.core.wording import percent


@dataclass(frozen=True)
class PatternClass:
    """A class with its key, its name in data, its name for people, and what is seen."""

    key: str
    name: str
    title: str
    seen: str


CLASSES = (
    PatternClass(
        "1",
        "vertical",
        "Vertical",
        "Columns of special tokens or of punctuation are the main thing; no plain line along the "
        "diagonal.",
    ),
    PatternClass(
        "2",
        "diagonal",
        "Diagonal",
        "A plain line or band along the diagonal or beside it; no plain column of a special token "
        "or of punctuation.",
    ),
    PatternClass(
        "3",
        "vertical_diagonal",
        "Vertical + diagonal",
        "A line or band along the diagonal, and columns of special tokens or of punctuation, both "
        "plain.",
    ),
    PatternClass(
        "4",
        "block",
        "Block",
        "In a pair of sentences: filled squares (triangles) that end where the second sentence "
        "begins.",
    ),
    PatternClass(
        "5",
        "heterogeneous",
        "Heterogeneous",
        "Anything else: columns of content words, spots, rows, curves, a wide haze, an even grey.",
    ),
)


def caption(run: Any) -> str:
    """How to read the bars."""
    which = (
        "Columns of special tokens and of punctuation make a map vertical; of hatched maps no "
        "class is certain. "
    ) * (run.data.attrs.get("columns") == "special")
    words: str = run.words(
        "Each bar is cut into the shares of maps of each class, mean over the heads of a layer, "
        "and over all heads at the right; classes are told by a network that learned from maps "
        "labelled by eye, here with a mean confidence of {sure:.0f} %; {over}. "
        f"{which}After Kovaleva et al. (2019), Figure 2.",
        sure=100 * run.mean("confidence"),
    )
    return words


def finding(run: Any) -> str:
    """The class of most maps."""
    shares = {one.title.lower(): run.mean(f"model_share.{one.name}") for one in CLASSES}
    most = max(shares, key=lambda title: shares[title] if shares[title] > 0 else 0)
    share = shares[most]
    return f"Most are {most}: {percent(share)} of all maps." if share > 0 else ""


QUESTION = Question(
    name="patterns",
    package=__name__,
    title="Classes of maps",
    place=70,
    summary="classes of maps: vertical, diagonal, both, block, heterogeneous",
    source="Kovaleva et al. 2019, §4.1",
    needs=frozenset({"attention"}),
    options={
        "columns": Option("special", ("special", "any")),
        "classifier": Option("", deep=True, files=True),
        "least_tokens": Option(10, check_value=some),
    },
    measure="measure:Patterns",
    figures=(
        PicturePlan(
            name="patterns",
            title="Classes of maps",
            columns=1,
            panels=(
                DrawnPanel(
                    title="Classes of maps, by layer",
                    needs="model_share",
                    by="figure:draw_layers",
                    height=0.62,
                ),
            ),
            caption=caption,
            text="A map with a few columns says where a head rests, one along the diagonal that it "
            "looks nearby, blocks that it keeps to a segment. What is left, heterogeneous maps, is "
            "the most that can depend on what the words are (Kovaleva et al. 2019).",
            finding=finding,
        ),
    ),
    terms={
        **{one.name: Term(f"{one.title.lower()} maps", one.seen, KOVALEVA) for one in CLASSES},
        "layer_share": Term(
            "share of maps of a layer",
            "How many maps of a layer’s heads, one for each head and input, are of the class.",
            KOVALEVA,
        ),
        "model_share": Term(
            "share of maps of a model",
            "The same over all layers: a bar of Kovaleva et al.’s Figure 2.",
            KOVALEVA,
        ),
        "unsure": Term(
            "maps that are of no certain class",
            "Share of maps to whose likeliest class the classifier gives a probability below its "
            "threshold.",
            OURS,
        ),
        "punctuation": Term(
            "vertical by punctuation",
            "Share of maps with columns (vertical, or vertical + diagonal) that hold more weight "
            "on punctuation than on special tokens.",
            OURS,
        ),
        "confidence": Term(
            "confidence of the classifier",
            "Mean probability that it gives to the likeliest class; how far to trust it is on its "
            "card.",
            OURS,
        ),
        "typical": Term(
            "typical map",
            "The map of a head that the classifier is surest to be of the head’s class.",
            OURS,
        ),
        "typical_score": Term(
            "score of a typical map", "The classifier’s probability of the map’s class.", OURS
        ),
    },
    labels={
        "share": "{choice}",
        "unsure": "maps of no certain class",
        "punctuation": "maps vertical by punctuation",
    },
    shown={"change": ("share.heterogeneous",)},
    compared="Classes of maps",
    withheld=("confidence",),  # of the classifier
    claims="claims:CLAIMS",
    marks={
        "vertical": ("sky", "s"),
        "diagonal": ("orange", "D"),
        "vertical_diagonal": ("green", "^"),
        "block": ("purple", "v"),
        "heterogeneous": ("grey", "o"),
    },
    card="typical_maps:CARD",
    common=True,
)
