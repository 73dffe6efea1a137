"""Wu et al. (2024): heads that retrieve, of the seven models whose scores are public."""

from dataclasses import replace

import numpy as np

from headscope.claims.bibliography import SOURCES
from headscope.claims.terms import WU
from headscope.claims.verdict import Outcome, Verdict, between
from headscope.core.accumulators import Float64
from headscope.core.intervals import POSITIVE
from headscope.papers import quantities
from headscope.papers.claim_engine import ClaimGroup, Paper, PaperClaim
from headscope.papers.own_models import OwnModel
from headscope.papers.published import Published
from headscope.papers.quantities import Measured, PaperRun, Unmeasured

LEAST = 0.1  # Wu et al.: heads that retrieve
FEW, NEVER = 0.1, 0.45  # ours and theirs: shares of heads
WHERE = "head_score/*.json of the authors’ code"
FIGURE = "Figure 3, as a third party read it"
MODELS = {  # layers, heads; top heads; heads of 0.1 or more, and of exactly 0, in %; both in FIGURE
    # The files of three models were not read: their heads have no lines.
    "yaofu/llama-2-7b-80k": (32, 32, (
        ((16, 19), "0.94"), ((11, 15), "0.92"), ((8, 26), "0.80"), ((6, 9), "0.62"),
        ((7, 12), "0.61"),
    ), ("3.2", "70.2"), ("3.2", "70.2")),
    "yaofu/llama-2-13b-64k": (40, 40, (), ("", ""), ("2.1", "73.2")),
    "alpindale/Mistral-7B-v0.2-hf": (
        32, 32, (((18, 0), "0.94"), ((12, 7), "0.93")), ("4.2", ""), ("4.2", "65.2"),
    ),
    "mistralai/Mixtral-8x7B-v0.1": (32, 32, (), ("", ""), ("6.2", "57.6")),
    "01-ai/Yi-6B-200K": (32, 32, (), ("5.2", ""), ("5.7", "50.7")),
    "Qwen/Qwen1.5-14B": (40, 40, (), ("3.8", ""), ("3.8", "53.5")),
    "Qwen/Qwen1.5-14B-Chat": (40, 40, (), ("", ""), ("4.3", "71.1")),
}  # fmt: skip


def _steps(run: PaperRun) -> Float64:
    scores = run.results("circuits")
    if "retrieval_steps" not in scores:
        raise Unmeasured("needs 10 needles that the model tells in its own words: it tells fewer")
    return run.draws("circuits", "retrieval_steps")


@quantities.reads("needle")
def _score(run: PaperRun, head: tuple[int, int], rank: int) -> Measured:
    return run.of_head(_steps(run), head, rank=rank, over=LEAST, bounds=POSITIVE)


@quantities.reads("needle")
def _sparse(run: PaperRun) -> Measured:
    number = run.jumping(_steps(run), lambda drawn: np.asarray((drawn >= LEAST).mean((1, 2))))
    return replace(number, verdict=between(number.value, *number.ends, 0.0, FEW))


@quantities.reads("needle")
def _never(run: PaperRun) -> Measured:
    """A head that did once does: more needles can only make the share of the others smaller."""
    share = float((_steps(run)[0] == 0).mean())
    may = share >= NEVER
    verdict = Verdict(Outcome.CANNOT_TELL if may else Outcome.FAILS)
    detail = "more needles can only lower it" if may else ""
    return Measured(share, n=run.counted, verdict=verdict, detail=detail)


def _known(text: str) -> tuple[Published, ...]:
    return (Published(text, "code", where=WHERE),) if text else ()


def _group(model: str) -> ClaimGroup:
    _, _, top, counted, drawn = MODELS[model]
    sparse, never = (
        (*_known(text), Published(seen, "read", 0.1, FIGURE))
        for text, seen in zip(counted, drawn, strict=True)
    )
    key = model.rpartition("/")[2]
    return ClaimGroup(
        key.lower().replace(".", "-"),
        key,
        "Steps of a written answer that attend most to a token of the needle and copy it, by the "
        "needle’s tokens; layer and head from 0. In another model those with most stand for them.",
        (
            *(
                PaperClaim(
                    f"{key}-{layer}-{head}",
                    key,
                    f"Retrieval score of head {layer}.{head}",
                    _score((layer, head), rank),
                    _known(text),
                    "share",
                    "surely above 0.1",
                    model=model,
                )
                for rank, ((layer, head), text) in enumerate(top)
            ),
            PaperClaim(
                f"{key}-sparse",
                "§3.1",
                f"{key}: heads that retrieve, 0.1 or more",
                _sparse(),
                (*sparse, Published("3–6")),
                "%",
                "some, and at most a tenth",
                model=model,
            ),
            PaperClaim(
                f"{key}-never",
                "§3.1",
                f"{key}: heads that never do, exactly 0",
                _never(),
                (*never, Published("45–73")),
                "%",
                "45 % or more",
                model=model,
            ),
        ),
    )


PAPER = Paper(
    "wu2024",
    "Retrieval Head Mechanistically Explains Long-Context Factuality",
    SOURCES[WU],
    next(iter(MODELS)),
    tuple(OwnModel(name, *one[:2]) for name, one in MODELS.items()),
    tuple(map(_group, MODELS)),
    decoder=True,
    doubt="needles and questions are the authors’; haystacks are shorter and fewer (theirs: 1,000 "
    "to 50,000 tokens, 600 runs), of your text or the bundled one",
)
