"""Words of what heads do on made inputs."""

from headscope.core.terms import (
    ELHAGE,
    GEMA,
    GOULD,
    OLSSON,
    OURS,
    WANG,
    WU,
    XIAO25,
    ZHANG,
    Term,
)

TERMS = {
    "previous_token": Term("previous token, made inputs", "Attention of a token to the one before "
        "it, where all tokens are drawn at random; held against an earlier token at random.",
        f"{WANG}, Appendix"),
    "duplicate_token": Term("duplicate token", "Attention of a token that comes again to where it "
        "stood before; held against the same places where nothing comes again.",
        f"{WANG}, Appendix"),
    "induction": Term("induction", "Attention of a token that comes again to the one that came "
        "after it before, as is done to repeat what was read; held against the same places where "
        "nothing comes again.", f"{OLSSON}: prefix matching"),
    "copying": Term("copying", "Of what a head’s attended tokens raise among the tokens of the "
        "input, by the direct way to the logits, the share that each gives to itself; weighted by "
        "attention.", f"{OLSSON}; the share is ours"),
    "copied": Term("copying, first", "The share of a head’s attention that goes to tokens which "
        "raise themselves most, of all tokens of the input, by the direct way to the logits.",
        OURS),
    "weight_copying": Term("copying by weights", "Σ Re λ / Σ |λ| of W_E W_V W_O W_U: 1 where every "
        "token speaks for itself through the head, −1 where it speaks against itself.", ELHAGE),
    "successor": Term("successor", "The share of ordinals (Monday, B, two, …) whose successor the "
        "head’s weights make the top token of the vocabulary.", GOULD),
    "retrieval": Term("retrieval", "The share of the tokens of a needle in a haystack that a head "
        "attends to most at the step that tells them; mean over the runs that the model answers.",
        f"{WU}; distinct tokens, not steps"),
    "retrieval_steps": Term("retrieval, steps", "Steps of an answer that the model writes by "
        "itself which attend to a token of the needle most and copy it, by the needle’s tokens; "
        "above 1 where it says a token again.", WU),
    "qr_score": Term("QRHead score", "Attention from the question to the needle’s sentence, above "
        "that of the query “N/A” in its place.", ZHANG),
    "locos": Term("LOCOS", "What a head writes for the right token from the needle, by the direct "
        "way to the logits, above what it writes for it from as many other tokens.", GEMA),
    "needle_streaming": Term("streaming share of answers", "What the first few and the latest "
        "tokens get together, as a needle is told: a cache of a streaming head keeps only these.",
        XIAO25),
    "retrieval_rho": Term("agreement with retrieval", "Rank correlation over heads of another "
        "score with retrieval.", OURS),
    "recall": Term("recall", "The share of a needle’s tokens that the model holds most likely.",
        f"{WU}; by the right answer so far"),
    "composition": Term("composition", "How much of what an earlier head writes a later one reads, "
        "for its queries (Q), keys (K) or values (V), by their weights: "
        "‖W_read W_write‖ / (‖W_read‖ ‖W_write‖).", ELHAGE),
    "composition_above": Term("above random rotations", "By how many standard deviations the "
        "square of a composition lies above that of matrices with the same singular values, turned "
        "at random.", OURS),
    "null": Term("same places, no repeat", "What a head gives to the places of a score in inputs "
        "where nothing stands there that it could look for.", OURS),
    "surely_above": Term("surely above", "The lower end of the interval of score − null, long "
        "enough to hold for all heads and scores at once.", OURS),
    "told_again": Term("told again", "The probability that the model gives to the right next token "
        "where random tokens come for the second time.", OURS),
}  # fmt: skip
LABELS = {
    "score": "{choice}", "null": "{choice}: same places, no repeat",
    "surely_above": "{choice}: surely above", "successor": "successor", "retrieval": "retrieval",
    "weight_copying": "copying by weights", "copying": "copying, share", "copied": "copying",
    "retrieval_steps": "retrieval, steps", "qr_score": "QRHead", "locos": "LOCOS",
    "needle_streaming": "answers to first and latest tokens, {choice}",
    "retrieval_rho": "agreement with retrieval, {choice}",
}  # fmt: skip
