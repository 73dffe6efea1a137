"""Olsson et al. (2022): heads that induce, in GPT-2 small, whose scores others have published."""

from headscope.claims.bibliography import SOURCES
from headscope.claims.terms import OLSSON
from headscope.claims.verdict import all_of, known
from headscope.core.intervals import SHARE
from headscope.core.results import largest_first
from headscope.core.wording import percent
from headscope.papers import quantities
from headscope.papers.claim_engine import ClaimGroup, Paper, PaperClaim, PaperFigure
from headscope.papers.own_models import GPT2_SMALL
from headscope.papers.published import Published
from headscope.papers.quantities import Measured, PaperRun

LEAST = 0.25  # ours, as of the label
THIRD = "induction-head-detector, a third party’s code, with TransformerLens"
PREFIX = (
    ((5, 5), "0.932"),
    ((6, 9), "0.913"),
    ((7, 10), "0.910"),
    ((5, 1), "0.908"),
    ((7, 2), "0.833"),
)


def score_of(run: PaperRun, circuit: str, head: tuple[int, int], rank: int) -> Measured:
    """The attention of the paper's head on random tokens; in another model, of the rank-th."""
    draws = run.draws("circuits", "score", circuit=circuit)
    return run.of_head(draws, head, rank=rank, over=LEAST, bounds=SHARE)


@quantities.reads("repeated")
def _prefix(run: PaperRun, head: tuple[int, int], rank: int) -> Measured:
    return score_of(run, "induction", head, rank)


def _strongest(run: PaperRun, circuit: str) -> tuple[int, int]:
    return largest_first(run.draws("circuits", "score", circuit=circuit)[0])[0]


@quantities.reads("repeated")
def _copied(run: PaperRun) -> Measured:
    layer, head = _strongest(run, "induction")
    copied = run.draws("circuits", "copied")[:, layer, head]
    return run.measured(copied, over=0.5, bounds=SHARE, detail=run.names.head(layer, head))


@quantities.reads("repeated")
def _earlier(run: PaperRun) -> Measured:
    """Layers between the strongest head of each kind; it holds of heads that are such."""
    kinds = ("previous_token", "induction")
    first, then = (_strongest(run, kind) for kind in kinds)
    places = zip(kinds, (first, then), strict=True)
    scores = [score_of(run, kind, place, 0).verdict for kind, place in places]
    layers = len(run.draws("circuits", "copied")[0])
    detail = (
        f"{run.names.head(*first)}, then {run.names.head(*then)}; of two heads at random in "
        f"{percent((1 - 1 / layers) / 2)} of draws"
    )
    verdict = all_of([*filter(None, scores), known(first[0] < then[0])])
    return Measured(then[0] - first[0], n=run.counted, verdict=verdict, detail=detail)


@quantities.reads("repeated")
def _told_again(run: PaperRun) -> Measured:
    return run.measured(run.draws("circuits", "told_again"), over=0.5, bounds=SHARE)


INDUCTION = ClaimGroup(
    "induction",
    "Induction heads",
    "On random tokens that come twice a head attends to what came after the same token before "
    "(prefix matching), and speaks for it (copying). Heads of GPT-2 small are called by layer and "
    "head from 0, as there; in another model the five that do it most stand for them.",
    (
        *(
            PaperClaim(
                f"prefix-{layer}-{head}",
                "GPT-2 small",
                f"Head {layer}.{head}: prefix matching",
                _prefix((layer, head), rank),
                (Published(text, "code", where=THIRD),),
                "share",
                "surely above 0.25",
            )
            for rank, ((layer, head), text) in enumerate(PREFIX)
        ),
        PaperClaim(
            "copying",
            "Definition",
            "The head that matches most copies: of its attention to drawn tokens, on those that "
            "raise themselves most",
            _copied(),
            (),
            "%",
            "the interval lies above 50 %",
        ),
        PaperClaim(
            "earlier",
            "Mechanism",
            "A head of the previous token stands before it: layers between the strongest two",
            _earlier(),
            direction="in an earlier layer",
        ),
        PaperClaim(
            "told-again",
            "Behaviour",
            "The model tells what comes again: probability of the right token",
            _told_again(),
            (),
            "%",
            "the interval lies above 50 %",
        ),
    ),
    (PaperFigure("repeated", "circuits"),),
)


PAPER = Paper(
    "olsson2022",
    "In-context Learning and Induction Heads",
    SOURCES[OLSSON],
    GPT2_SMALL.id,
    (GPT2_SMALL,),
    (INDUCTION,),
    decoder=True,
    doubt="the paper’s own models were not released, but for GPT-2; it prints no score of a head",
)
