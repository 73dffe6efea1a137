"""The question distance: how far do heads look, and is there anything beyond sink and window?"""

from collections.abc import Iterator
from typing import Any

from headscope.claims.plan import ClaimPlan, DrawnPanel, Grid, LabelRule, PanelPlan, PicturePlan
from headscope.claims.question import Option, Question
from headscope.claims.terms import OURS, XIAO, XIAO25, Term, terms_of

WINDOWS = "4+64,128+256"
LONG = 10  # ours: inputs with queries that see far more; of fewer no head is said to need no more
PLAIN = ("self", "previous", "next", "first", "sink", "cls", "sep", "special")


def windows_of(name: str, text: str) -> list[tuple[int, int]]:
    """The first S and the last W keys of each `S+W`; raises ValueError for anything else."""
    try:
        pairs = [(int(s), int(w)) for s, w in (one.split("+") for one in text.split(","))]
    except ValueError:
        pairs = []
    if not pairs or min(min(pair) for pair in pairs) < 1:
        raise ValueError(
            f"{name} is {text!r}; wanted the numbers of first and last keys, as in {WINDOWS!r}"
        )
    return pairs


def windows(run: Any) -> list[dict[str, Any]]:
    """The smallest window that some input is long enough for, and its two numbers, if any."""
    names = [str(name) for name in run.data["window"].values]
    wide = [name for name in names if run.has("streaming", window=name)]
    return [_window(name) for name in wide[:1]]


def long_windows(run: Any) -> list[dict[str, Any]]:
    """The smallest that LONG inputs are long enough for; none in a run of an older version."""
    if "streaming_inputs" not in run.data:
        return []
    inputs = run.data["streaming_inputs"]
    names = inputs["window"].values[inputs.values >= LONG].tolist()
    return [{**_window(name), "inputs": int(inputs.sel(window=name))} for name in names[:1]]


def _window(name: str) -> dict[str, Any]:
    return dict(zip(("window", "S", "W"), (name, *name.split("+")), strict=True))


def panels(run: Any) -> Iterator[PanelPlan]:
    """Distances of heads, profiles of layers, and the smallest window."""
    yield Grid(title="Mean distance (tokens)", needs="mean_distance")
    yield DrawnPanel(
        title="Attention within a distance", needs="profile", by="figure:draw_profiles"
    )
    for one in windows(run):
        name = one["window"]
        title, needs = f"First and latest tokens ({name})", f"streaming.{name}"
        yield Grid(title=title, needs=needs, unit="probability", top=1.0)


def caption(run: Any) -> str:
    """How to read the panels."""
    latest = ", (c) what the first {S} and latest {W} tokens get together from tokens that see "
    latest += "more than twice as many (uniform attention: {uniform_streaming:%})"
    words: str = run.words(
        "One cell a head: (a) how far it looks on the mean (uniform attention: "
        "{uniform_distance:tokens} tokens)"
        f"{''.join(run.words(latest, **one) for one in windows(run))}. (b) How much "
        "attention stays within a distance: one line a layer, the mean of its heads, darker for "
        "later layers; dashed: uniform attention. Means over inputs; intervals stand in the "
        "tables; {over:nearby}."
    )
    return words


def finding(run: Any) -> str:
    """How near attention stays."""
    if not run.has("distance_quantile.0.5"):
        return ""
    near = "Half of a mean head’s attention stays within {distance_quantile.0.5} tokens; "
    rest = [
        run.words("the first {S} and latest {W} tokens get {streaming:%}.", **one)
        for one in windows(run)
    ]
    words: str = run.words(near + (*rest, "its mean distance is {mean_distance}.")[0])
    return words


QUESTION = Question(
    name="distance",
    package=__name__,
    title="Distance",
    place=22,
    predicts="rules:RULES",
    measure="measure:Distance",
    summary="how far heads look, and how much first and latest tokens get together",
    source=f"{OURS}; first and latest tokens: {XIAO}",
    needs=frozenset({"attention"}),
    options={"windows": Option(WINDOWS, check_value=windows_of)},
    shown={"card": ("nearby", "streaming.4+64"), "change": ("mean_distance", "nearby")},
    compared="How far they look",
    common=True,
    terms=terms_of(
        OURS,
        {
            "profile": (
                "attention by distance",
                "What tokens give to others so many tokens away, before or behind; each bin "
                "reaches from one power of two to below the next.",
            ),
            "nearby": (
                "nearby tokens",
                "Attention to tokens at most 3 away, before or behind, the "
                "token itself among them.",
            ),
            "mean_distance": (
                "mean distance",
                "How many tokens away stands what a token attends to, mean over its attention; "
                "compare it in inputs of one length only, as longer ones have farther tokens.",
            ),
            "distance_quantile": (
                "reach",
                "The distance within which half, or nine tenths, of a "
                "head’s attention stays, found in each input and averaged over inputs.",
            ),
            "uniform_distance": (
                "distance of uniform attention",
                "The mean distance of a head that gives every token that may be seen the same: (n "
                "− 1/n) / 3 of n tokens, (n − 1) / 4 where the future is hidden.",
            ),
            "before": (
                "tokens before",
                "What an encoder’s tokens give to all those before them, "
                "special ones among them; the rest is of those behind and of the token itself.",
            ),
        },
    )
    | {
        "streaming": Term(
            "streaming share",
            "What the first few and the latest tokens of a decoder’s input get together, from "
            "tokens that see more than twice as many; 4+64 are the first 4 and the latest 64. A "
            "head with all of it here loses little where the rest is forgotten.",
            f"{XIAO}; {XIAO25}; the measure is ours",
        ),
    },
    labels={
        "streaming": "first and latest tokens, {choice}",
        "distance_quantile": "distance that holds {choice} of the attention",
    },
    figures=(
        PicturePlan(
            name="distance",
            title="How far heads look",
            columns=3,
            panels=panels,
            caption=caption,
            finding=finding,
            text="Some heads work within a phrase, others reach over the whole input. A head whose "
            "attention is near, or rests on the first tokens, needs little of the input; a layer "
            "whose line is below the dashed one looks farther than uniform attention.",
        ),
    ),
    claims=(
        ClaimPlan(
            kind="nearby",
            rule=LabelRule(
                "nearby tokens",
                number="attention within 3 tokens",
                least=0.5,
                source=f"{OURS}, as for a position",
                unless=PLAIN,
                variable="nearby",
                predicts="the tokens within three",
            ),
            share="nearby",
            label="nearby tokens {share:%}",
            sentence="gives {share:%} of its attention within 3 tokens",
        ),
        ClaimPlan(
            kind="streaming",
            rule=LabelRule(
                "first and latest tokens",
                number="attention to the first and latest tokens, from a decoder’s tokens that see "
                "more than twice as many",
                least=0.95,
                source=OURS,
                asks=f"{LONG} inputs or more that have such tokens",
                unless=("nearby", *PLAIN),
                variable="streaming",
            ),
            each=long_windows,
            share="streaming",
            usual="uniform_streaming",
            label="first and latest tokens {share:%}",
            sentence="gives the first {S} and latest {W} tokens {share:%} in {inputs:,} inputs "
            "that have far more, where {uniform_streaming:probability} is uniform",
        ),
    ),
)
