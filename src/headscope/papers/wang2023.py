"""Wang et al. (2023): the heads that predict who receives the object, in GPT-2 small."""

from headscope.claims.bibliography import SOURCES
from headscope.claims.terms import WANG
from headscope.claims.verdict import known
from headscope.papers import quantities
from headscope.papers.claim_engine import ClaimGroup, Paper, PaperClaim, PaperFigure
from headscope.papers.olsson2022 import score_of
from headscope.papers.own_models import GPT2_SMALL
from headscope.papers.published import Published
from headscope.papers.quantities import Measured, PaperRun

DEMO = "TransformerLens, Direct_Logit_Attribution_Demo"
WRITTEN = (
    ((9, 9), "1.9583"), ((9, 6), "1.6281"), ((10, 7), "−1.4267"), ((11, 1), "−0.9117"),
    ((11, 10), "−0.9042"), ((10, 0), "0.6370"), ((10, 10), "0.4524"), ((8, 10), "0.4264"),
)  # fmt: skip
PATTERNS = (
    ("previous_token", "Previous-token", ((2, 2), (4, 11)), "the previous token"),
    ("duplicate_token", "Duplicate-token", ((0, 1), (0, 10), (3, 0)), "the same token before"),
    ("induction", "Induction", ((5, 5), (5, 8), (5, 9), (6, 9)), "what came after it before"),
)
MOVERS, NEGATIVE = ((9, 9), (9, 6), (10, 0)), ((10, 7), (11, 10))
INHIBITING = ((7, 3), (7, 9), (8, 6), (8, 10))


@quantities.reads("bag")
def _written(run: PaperRun, head: tuple[int, int], rank: int, sign: int) -> Measured:
    draws = run.draws("writes", "direct")
    at = quantities.paper_head(run, sign * draws[0], head, rank=rank)
    value = float(draws[0][at])
    verdict = known(sign * value > 0) if run.beside.own else None  # of others chosen by it
    return Measured(value, n="1 prompt", verdict=verdict, detail=run.names.head(*at), exact=True)


@quantities.reads("ioi")
def _pattern(run: PaperRun, circuit: str, head: tuple[int, int], rank: int) -> Measured:
    return score_of(run, circuit, head, rank)


@quantities.reads("ioi")
def _answer(
    run: PaperRun, variable: str, head: tuple[int, int], rank: int, *, sign: int = 1
) -> Measured:
    return run.of_head(run.draws("writes", variable), head, rank=rank, sign=sign)


@quantities.reads("ioi")
def _difference(run: PaperRun) -> Measured:
    return run.measured(run.draws("writes", "logit_difference"), over=0.0)


def _lines(
    key: str, words: str, variable: str, heads: tuple[tuple[int, int], ...], *, sign: int = 1
) -> list[PaperClaim]:
    side = "above" if sign > 0 else "below"
    return [
        PaperClaim(
            f"{key}-{layer}-{head}",
            "Figure 2",
            f"{words} {layer}.{head}",
            _answer(variable, (layer, head), rank, sign=sign),
            unit="%" if variable == "effect" else "logits",
            direction=f"surely {side} 0; in another model for all heads at once",
        )
        for rank, (layer, head) in enumerate(heads)
    ]


def _nth(place: int) -> int:
    """How many heads of the same sign stand before it among those of WRITTEN."""
    return sum(
        text.startswith("−") == WRITTEN[place][1].startswith("−") for _, text in WRITTEN[:place]
    )


ATTRIBUTION = ClaimGroup(
    "attribution",
    "What heads write after one prompt",
    "“When John and Mary went to the shops, John gave the bag to”: logits for “ Mary” less those "
    "for “ John”, directly. Value biases are outside heads, as there. Of another model the heads "
    "with most stand for these, for and against, and no direction is stated.",
    tuple(
        PaperClaim(
            f"writes-{layer}-{head}",
            "GPT-2 small",
            f"Head {layer}.{head} (from 0)",
            _written((layer, head), _nth(place), -1 if text.startswith("−") else 1),
            (Published(text, "code", where=DEMO),),
            "logits",
            "the same sign",
        )
        for place, ((layer, head), text) in enumerate(WRITTEN)
    ),
)

CIRCUIT = ClaimGroup(
    "circuit",
    "The heads of the circuit",
    "Heads are called by layer and head from 0, as in the paper; in another model those that do it "
    "most stand for them. Prompts are ours, after its templates, each beside the one in which the "
    "other gives; the paper corrupts with three new names, and finds heads by path patching.",
    (
        PaperClaim(
            "difference",
            "§2",
            "The model tells the name: its logit less that of who gives",
            _difference(),
            unit="logits",
            direction="the interval lies above 0",
        ),
        *_lines("mover", "Name mover: written for the name by", "direct", MOVERS),
        *_lines("negative", "Negative name mover: written by", "direct", NEGATIVE, sign=-1),
        *_lines("inhibiting", "S-inhibition: brought back by patching", "effect", INHIBITING),
        *(
            PaperClaim(
                f"{kind.replace('_token', '')}-{layer}-{head}",
                "Figure 2",
                f"{words} head {layer}.{head}: attention of random tokens to {target}",
                _pattern(kind, (layer, head), rank),
                (),
                "%",
                "surely above 25 %",
            )
            for kind, words, heads, target in PATTERNS
            for rank, (layer, head) in enumerate(heads)
        ),
    ),
    (PaperFigure("ioi", "circuits"),),
)


PAPER = Paper(
    "wang2023",
    "Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 Small",
    SOURCES[WANG],
    GPT2_SMALL.id,
    (GPT2_SMALL,),
    (ATTRIBUTION, CIRCUIT),
    decoder=True,
)
