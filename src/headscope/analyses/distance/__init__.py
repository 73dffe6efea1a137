"""The question distance: how far do heads look, and is there anything beyond sink and window?"""

from headscope.core.question import Option, Question
from headscope.core.terms import OURS, XIAO

WINDOWS = "4+64,128+256"


def windows_of(name: str, text: str) -> list[tuple[int, int]]:
    """The first S and the last W keys of each `S+W`; raises ValueError for anything else."""
    try:
        pairs = [(int(s), int(w)) for s, w in (one.split("+") for one in text.split(","))]
    except ValueError:
        pairs = []
    if not pairs or min(min(pair) for pair in pairs) < 1:
        raise ValueError(
            f"{name} is {text!r}; wanted how many first and last keys, as in {WINDOWS!r}"
        )
    return pairs


QUESTION = Question(
    name="distance",
    package=__name__,
    title="Distance",
    place=22,
    measure="measure:Distance",
    summary="how far heads look, and how much first and latest tokens get together",
    source=f"{OURS}; first and latest tokens: {XIAO}",
    needs=frozenset({"attention"}),
    options={"windows": Option(WINDOWS, check_value=windows_of)},
    figures="figure:FIGURES",
    section="figure:SECTIONS",
    terms="claims:TERMS",
    labels="claims:LABELS",
    shown={
        "card": ("nearby", "streaming.4+64"),
        "change": ("mean_distance", "nearby"),
    },
    compared="How far they look",
    claims="claims:claims",
    rules="claims:RULES",
    common=True,
)
