"""Settings of circuits."""

from __future__ import annotations

from headscope.core.options import flag, option
from headscope.run.execution import Intervals

FEWEST = 10  # inputs, or ordinals: of fewer nothing is said of a head
PROMPTS = (  # the sets that are made
    "ioi",
    "greater-than",
    "antonyms",
    "capitals",
    "gendered-pronouns",
    "induction",
    "docstring",
    "arithmetic",
    "colours",
    "agreement",
)
LEAST_LENGTH = 4  # tokens that come twice


class CircuitSettings(Intervals):
    """Settings of a run of circuits."""

    sequences: int = option(
        "Made inputs of random tokens, with a repeat and without.",
        100,
        least=FEWEST,
        heading="What to compute",
    )
    length: int = option("Tokens that come twice.", 50, least=LEAST_LENGTH)
    needles: int = option("Haystacks with a needle.", 20, least=1)
    haystack: int | None = option(
        "Tokens of each, 512 by default; 0 for none.",
        least=0,
        python="None where the model takes less.",
    )
    steps: int = option(
        "Tokens of an answer that the model writes itself, to count its steps as Wu et al. "
        "do; 50 there, 0 for none.",
        0,
        least=0,
    )
    successors: bool = flag("Which heads name the successor.", True, off="Leave them out.")
    relations: int = option(
        "Which heads raise or lower related words (plurals, capitals, …) by their weights: tokens "
        "at either end that count; 0 leaves them out.",
        10,
        least=0,
    )
    relation_pairs: str = option(
        "Related words of your own in place of ours: a table with the columns relation, word, "
        "related.",
        "",
        metavar="FILE",
    )
    composition: bool = flag(
        "Which heads read which: slow in models of thousands of heads.",
        True,
        off="Leave out which heads read which.",
    )
    prompts: str = option(
        f"Which heads write and carry the answers of prompts: {', '.join(PROMPTS)}, or a table "
        "with the columns prompt, answer, wrong, corrupted.",
        "",
        metavar="NAME|FILE",
        values=PROMPTS,
    )
    pairs: int = option("Prompts of a generated set at most.", 32, least=1)
    circuit: bool = flag(
        "Which heads and feed-forward layers together answer the prompts.",
        True,
        off="Leave out which heads together answer the prompts.",
    )
    edges: bool = flag(
        "Also which edges: from a head to the queries, keys or values of later ones.",
        False,
    )
    views: int = option("Prompts that a page shows head by head, at most; 0 for none.", 4, least=0)
    switch_off: int = option(
        "Heads of each kind to switch off, the best first, and as many random ones: what that "
        "costs on repeated random tokens.",
        0,
        least=0,
        metavar="N",
    )
    batch_tokens: int = option(
        "Tokens of a forward pass, about.", 1024, least=1, heading="How to run"
    )
    replicates: int = option("Groups of sequences at most, for intervals.", 200, least=0)
    seed: int = option("Seed of all that is made.", 0, least=0)
