"""Claims and labels of heads from their attention and output on synthetic inputs."""

from functools import partial
from typing import Any

import numpy as np

from headscope.claims.plan import CHANGES, COPIES, OWN_KEYS, OWN_NEXT, ClaimPlan, LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import (
    ELHAGE,
    GEMA,
    GOULD,
    OLSSON,
    OURS,
    WANG,
    WU,
    XIAO25,
    YAMAGIWA,
    ZHANG,
    Term,
)
from headscope.core.accumulators import Bools
from headscope.core.intervals import Estimate
from headscope.core.results import surely
from headscope.experiments.circuits import relation_claims

NAME = "circuits"
LEAST = 0.25  # ours: of the attention, or of ordinals
RETRIEVED = 0.1  # Wu et al.
COPIED = 0.5  # ours: of the attention to drawn tokens
SCORES = {  # kind -> its label, what is compared, what it is compared with, where it looks, source
    "induction": (
        "induction",
        "attention of a token that comes again to what came after it before",
        "the same places without a repeat",
        "attends to what came after the same token before",
        OLSSON,
    ),
    "previous_token": (
        "previous token, made inputs",
        "attention of random tokens to the previous one",
        "an earlier token at random",
        "attends to the previous of random tokens",
        WANG,
    ),
    "duplicate_token": (
        "duplicate token",
        "attention of a token that comes again to itself before",
        "the same places without a repeat",
        "attends to the same token before",
        WANG,
    ),
}
LOOKS = {  # the rules of attention behind them
    "induction": "the token after the same one before",
    "previous_token": "the previous token",
    "duplicate_token": "the same token before",
}
RULES = {
    kind: LabelRule(
        name,
        number=number,
        least=LEAST,
        source=f"{source}; the threshold is {OURS}’s",
        asks=f"surely above attention to {against}, for all heads and scores at once",
        variable=kind,
        predicts=LOOKS[kind],
        expects=COPIES if kind == "induction" else CHANGES,
    )
    for kind, (name, number, against, _, source) in SCORES.items()
}
RULES["copying"] = LabelRule(
    "copying",
    number="of all attention of random tokens that come again, the share to tokens that "
    "raise themselves most of those in the input",
    least=LEAST,
    source=f"{OURS}, after {OLSSON}",
    asks=f"of the attention to drawn tokens it is more than {COPIED:g}",
    variable="copied_attention",
    predicts=OWN_KEYS,
    expects=COPIES,
)
RULES["retrieval"] = LabelRule(
    "retrieval",
    number="share of a needle’s tokens that are attended to most as they are told",
    least=RETRIEVED,
    source=WU,
    asks="of 10 runs or more that the model answers",
    variable="retrieval",
    predicts=OWN_NEXT,
    expects=COPIES,
)
RULES["successor"] = LabelRule(
    "successor",
    number="share of ordinals whose successor comes out on top",
    least=LEAST,
    source=f"{GOULD}; the threshold is {OURS}’s",
    variable="successor",
)
RULES |= relation_claims.RULES


def _above(run: Reading, score: Estimate, circuit: str) -> Bools:
    return np.logical_not(run("surely_above", circuit=circuit).value <= 0)


def _copies(run: Reading, share: Estimate) -> Bools:
    """Share of the attention to drawn tokens; runs of older versions do not have it."""
    if "copied" not in run.data:
        return np.ones(share.value.shape, bool)
    return surely(run("copied")) > COPIED


def _with(number: str, words: str, more: str, run: Reading, *place: int, **fields: Any) -> str:
    return words + more * (number in run.data)


CLAIMS = (
    *(
        ClaimPlan(
            kind=kind,
            rule=RULES[kind],
            each=({"circuit": kind},),
            share="score",
            usual="null",
            where=_above,
            label=f"{name} {{share:%}}",
            sentence=f"{looks}, {{share:%}}; to {against} {{usual:%}}",
        )
        for kind, (name, _, against, looks, _) in SCORES.items()
    ),
    ClaimPlan(
        kind="copying",
        rule=RULES["copying"],
        share="copied_attention",
        usual=lambda run: 1 / run.data.attrs["length"],
        where=_copies,
        label="copying {share:%}",
        sentence=partial(
            _with,
            "copied",
            "gives {share:%} of its attention to tokens that raise themselves most through it",
            ", {copied:%} of what random tokens get",
        ),
    ),
    ClaimPlan(
        kind="retrieval",
        rule=RULES["retrieval"],
        share="retrieval",
        usual=lambda run: 0.0,
        label="retrieval {share:%}",
        sentence=partial(
            _with,
            "needle_attention",
            "attends most to a needle’s token as it is told for {share:%} of them",
            ", and gives these {needle_attention:%} of its attention",
        ),
    ),
    ClaimPlan(
        kind="successor",
        rule=RULES["successor"],
        share="successor",
        usual=lambda run: 0.0,
        label="successor {share:%}",
        sentence="has weights that make the successor of an ordinal the top token for {share:%} of "
        "them",
    ),
    *relation_claims.CLAIMS,
)

TERMS = {
    "previous_token": Term(
        "previous token, made inputs",
        "Attention of a token to the one before it, where all tokens are drawn at random; held "
        "against an earlier token at random.",
        f"{WANG}, Appendix",
    ),
    "duplicate_token": Term(
        "duplicate token",
        "Attention of a token that comes again to where it stood before; held against the same "
        "places where nothing comes again.",
        f"{WANG}, Appendix",
    ),
    "induction": Term(
        "induction",
        "Attention of a token that comes again to the one that came after it before, as is done to "
        "repeat what was read; held against the same places where nothing comes again.",
        f"{OLSSON}: prefix matching",
    ),
    "copying": Term(
        "copying, share",
        "Of what a head’s attended tokens raise among the tokens of the input, by the direct way "
        "to the logits, the share that each gives to itself; weighted by attention.",
        f"{OLSSON}; the share is ours",
    ),
    "copied_attention": Term(
        "copying",
        "The share of all attention of random tokens that come again which goes to tokens that "
        "raise themselves most, of all tokens of the input, by the direct way to the logits.",
        OURS,
    ),
    "copied": Term(
        "copying, of drawn tokens",
        "The same of what goes to drawn tokens alone, without the first token.",
        OURS,
    ),
    "weight_copying": Term(
        "copying by weights",
        "Σ Re λ / Σ |λ| of W_E W_V W_O W_U: 1 where every token speaks for itself through the "
        "head, −1 where it speaks against itself.",
        ELHAGE,
    ),
    "successor": Term(
        "successor",
        "The share of ordinals (Monday, B, two, …) whose successor the "
        "head’s weights make the top token of the vocabulary.",
        GOULD,
    ),
    "retrieval": Term(
        "retrieval",
        "The share of the tokens of a needle in a haystack that a head "
        "attends to most at the step that tells them; mean over the runs that the model answers.",
        f"{WU}; distinct tokens, not steps",
    ),
    "needle_attention": Term(
        "attention to needles",
        "What a head gives to each token of a needle as it is told, mean over tokens and the same "
        "runs.",
        OURS,
    ),
    "retrieval_steps": Term(
        "retrieval, steps",
        "Steps of an answer that the model writes by itself which attend to a token of the needle "
        "most and copy it, by the needle’s tokens; above 1 where it says a token again.",
        WU,
    ),
    "qr_score": Term(
        "QRHead score",
        "Attention from the question to the needle’s sentence, above that of the query “N/A” in "
        "its place.",
        ZHANG,
    ),
    "locos": Term(
        "LOCOS",
        "What a head writes for the right token from the needle, by the direct "
        "way to the logits, above what it writes for it from as many other tokens.",
        GEMA,
    ),
    "needle_streaming": Term(
        "streaming share of answers",
        "What the first few and the latest tokens get together, as a needle is told: a cache of a "
        "streaming head keeps only these.",
        XIAO25,
    ),
    "retrieval_rho": Term(
        "agreement with retrieval",
        "Rank correlation over heads of another score with retrieval.",
        OURS,
    ),
    "recall": Term(
        "recall",
        "The share of a needle’s tokens that the model holds most likely.",
        f"{WU}; by the right answer so far",
    ),
    "composition": Term(
        "composition",
        "How much of what an earlier head writes a later one reads, for its queries (Q), keys (K) "
        "or values (V), by their weights: ‖W_read W_write‖ / (‖W_read‖ ‖W_write‖).",
        ELHAGE,
    ),
    "composition_above": Term(
        "above random rotations",
        "By how many standard deviations the square of a composition lies above that of matrices "
        "with the same singular values, turned at random.",
        OURS,
    ),
    "projection_kernel": Term(
        "projection kernel",
        "Mean cos² of the principal angles between the subspace that an earlier head writes and "
        "the one that a later head reads for its queries (Q), keys (K) or values (V).",
        f"{YAMAGIWA}; the mean is ours",
    ),
    "null": Term(
        "same places, no repeat",
        "What a head gives to the places of a score in inputs where nothing stands there that it "
        "could look for.",
        OURS,
    ),
    "surely_above": Term(
        "surely above",
        "The lower end of the interval of score − null, long enough to hold for all heads and "
        "scores at once.",
        OURS,
    ),
    "told_again": Term(
        "told again",
        "The probability that the model gives to the right next token "
        "where random tokens come for the second time.",
        OURS,
    ),
} | relation_claims.TERMS
LABELS = relation_claims.LABELS | {
    "score": "{choice}", "null": "{choice}: same places, no repeat",
    "surely_above": "{choice}: surely above", "successor": "successor", "retrieval": "retrieval",
    "weight_copying": "copying by weights", "copying": "copying, share",
    "copied": "copying, of drawn tokens", "copied_attention": "copying",
    "needle_attention": "attention to needles",
    "retrieval_steps": "retrieval, steps", "qr_score": "QRHead", "locos": "LOCOS",
    "needle_streaming": "answers to first and latest tokens, {choice}",
    "retrieval_rho": "agreement with retrieval, {choice}",
}  # fmt: skip
MARKS = {
    "induction": ("blue", "*"),
    "previous_token": ("orange", "<"),
    "duplicate_token": ("green", "D"),
    "copying": ("vermillion", "P"),
    "successor": ("purple", ">"),
    "retrieval": ("sky", "s"),
    "relation": ("purple", "^"),
    "suppression": ("purple", "v"),
}
