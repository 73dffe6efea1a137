"""Words and labels of heads by where they look, and what they write, on made inputs."""

import numpy as np
import xarray as xr

from headscope.core.claim import Claim
from headscope.core.intervals import Estimate
from headscope.core.plan import LabelRule
from headscope.core.reading import Reading
from headscope.core.results import at, estimate, surely
from headscope.core.terms import ELHAGE, GEMA, GOULD, OLSSON, OURS, WANG, WU, XIAO25, ZHANG, Term
from headscope.core.wording import percent

NAME = "circuits"
LEAST = 0.25  # ours: of the attention, or of ordinals
RETRIEVED = 0.1  # Wu et al.
COPIED = 0.5  # ours: of the attention to drawn tokens
SCORES = {  # kind -> its label, what is compared, what it is held against, where it looks, source
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
RULES = {
    kind: LabelRule(
        name,
        number=number,
        least=LEAST,
        source=f"{source}; the threshold is {OURS}’s",
        asks=f"surely above attention to {against}, for all heads and scores at once",
        variable=kind,
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
)
RULES["retrieval"] = LabelRule(
    "retrieval",
    number="share of a needle’s tokens that are attended to most as they are told",
    least=RETRIEVED,
    source=WU,
    asks="of 10 runs or more that the model answers",
    variable="retrieval",
)
RULES["successor"] = LabelRule(
    "successor",
    number="share of ordinals whose successor comes out on top",
    least=LEAST,
    source=f"{GOULD}; the threshold is {OURS}’s",
    variable="successor",
)
OTHERS = {  # kind -> its sentence, with its number
    "copying": "gives {} of its attention to tokens that raise themselves most through it",
    "retrieval": "attends most to a needle’s token as it is told for {} of them",
    "successor": "has weights that make the successor of an ordinal the top token for {} of them",
}
BESIDE = {  # kind -> another number, and how the sentence goes on with it, where the run has it
    "copying": ("copied", ", {} of what random tokens get"),
    "retrieval": ("needle_attention", ", and gives these {} of its attention"),
}


def claims(run: Reading) -> list[Claim]:
    """Heads that attend to a made target, more than to the same places without it; that copy,
    retrieve, count on.
    """
    scores = [one for kind in SCORES for one in _by_score(run, kind)]
    there = [kind for kind in OTHERS if RULES[kind].variable in run.data]
    return [*scores, *(one for kind in there for one in _other(run, kind))]


def _by_score(run: Reading, kind: str) -> list[Claim]:
    score, null = (run(name, circuit=kind) for name in ("score", "null"))
    above = run("surely_above", circuit=kind).value
    name, _, against, looks, _ = SCORES[kind]

    def say(layer: int, head: int) -> tuple[str, str]:
        words, usual = percent(*at(score, layer, head)), percent(float(null.value[layer, head]))
        return f"{name} {words}", f"{looks}, {words}; to {against} {usual}"

    shown = score.map(lambda part: np.where(above <= 0, np.nan, part))
    return run.claims(
        shown,
        null.value,
        RULES[kind],
        say,
        kind=kind,
        name=name,
        n=run.documents("score"),
    )


def _other(run: Reading, kind: str) -> list[Claim]:
    rule, sentence = RULES[kind], OTHERS[kind]
    share = shown = run(rule.variable)
    beside = _beside(run.data, kind)
    if kind == "copying" and beside is not None:
        copies = surely(beside) > COPIED
        share = shown.map(lambda part: np.where(copies, part, np.nan))
    chance = 1 / run.data.attrs["length"] if kind == "copying" else 0.0

    def say(layer: int, head: int) -> tuple[str, str]:
        words = percent(*at(shown, layer, head))
        more = "" if beside is None else BESIDE[kind][1].format(percent(*at(beside, layer, head)))
        return f"{kind} {words}", sentence.format(words) + more

    return run.claims(
        share,
        chance,
        rule,
        say,
        kind=kind,
        name=kind,
        n=run.documents(rule.variable),
    )


def _beside(dataset: xr.Dataset, kind: str) -> Estimate | None:
    name, _ = BESIDE.get(kind, ("", ""))
    return estimate(dataset, name) if name in dataset else None


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
}
LABELS = {
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
}
