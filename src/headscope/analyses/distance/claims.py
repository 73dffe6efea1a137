"""Words and claims about how far heads look, and about heads that need no more than a window."""

import numpy as np
import xarray as xr

from headscope.core.claim import Claim, LabelRule, claims_where
from headscope.core.head_attention import NEIGHBOURS, POSITION, SELF, SPECIALS
from headscope.core.results import at, documents, estimate, group
from headscope.core.terms import OURS, XIAO, XIAO25, Term, terms_of
from headscope.core.wording import percent

NAME = "distance"
STREAMING = 0.95  # ours: of the attention of queries that see more than twice as much
LONG = 10  # ours: inputs with such queries; of fewer no head is said to need no more

TERMS = {
    **terms_of(
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
    ),
    "streaming": Term(
        "streaming share",
        "What the first few and the latest tokens of a decoder’s input get together, from tokens "
        "that see more than twice as many; 4+64 are the first 4 and the latest 64. A head with all "
        "of it here loses little where the rest is forgotten.",
        f"{XIAO}; {XIAO25}; the measure is ours",
    ),
}
LABELS = {
    "streaming": "first and latest tokens, {choice}",
    "distance_quantile": "distance that holds {choice} of the attention",
}
_PLAIN = (SELF, *NEIGHBOURS, "first", "sink", *SPECIALS)
RULES = {
    "nearby": LabelRule(
        "nearby tokens",
        number="attention within 3 tokens",
        least=POSITION,
        source=f"{OURS}, as for a position",
        unless=_PLAIN,
        variable="nearby",
    ),
    "streaming": LabelRule(
        "first and latest tokens",
        number="attention to the first and latest tokens, from a decoder’s tokens that see more "
        "than twice as many",
        least=STREAMING,
        source=OURS,
        asks=f"{LONG} inputs or more that have such tokens",
        unless=("nearby", *_PLAIN),
        variable="streaming",
    ),
}


def claims(tree: xr.DataTree) -> list[Claim]:
    """Heads that look at nearby tokens; heads of decoders that look at first and latest ones."""
    dataset = group(tree, NAME)
    if dataset is None:
        return []
    made = []
    near = estimate(dataset, "nearby")
    if np.isfinite(near.value).any():

        def nearby(layer: int, head: int) -> tuple[str, str]:
            words = percent(*at(near, layer, head))
            return f"nearby tokens {words}", f"gives {words} of its attention within 3 tokens"

        made += claims_where(
            near,
            float(np.nanmean(near.value)),
            RULES["nearby"],
            nearby,
            kind="nearby",
            name="nearby tokens",
            n=documents(tree, dataset["nearby"]),
            analysis=NAME,
        )
    if "streaming_inputs" not in dataset:  # of a run of an older version
        return made
    inputs = dataset["streaming_inputs"]
    long = [str(window) for window in inputs["window"].values[inputs.values >= LONG]]
    return [*made, *(_streaming(tree, dataset, long[0]) if long else [])]  # of the smallest alone


def _streaming(tree: xr.DataTree, dataset: xr.Dataset, window: str) -> list[Claim]:
    share = estimate(dataset, "streaming", window=window)
    uniform = float(estimate(dataset, "uniform_streaming", window=window).value)
    inputs = int(dataset["streaming_inputs"].sel(window=window))
    first, last = window.split("+")
    goal = f"the first {first} and latest {last} tokens"

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(share, layer, head))
        return (
            f"first and latest tokens {words}",
            f"gives {goal} {words} in {inputs:,} inputs that have far more, where "
            f"{percent(uniform)} is uniform",
        )

    return claims_where(
        share,
        uniform,
        RULES["streaming"],
        say,
        kind="streaming",
        name="first and latest tokens",
        n=documents(tree, dataset["streaming"]),
        analysis=NAME,
    )
