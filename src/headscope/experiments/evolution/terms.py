"""Terms and words of the results on heads over training."""

from __future__ import annotations

from headscope.claims.terms import OURS, Term

TERMS = {
    "evolution": Term(
        "evolution",
        "A number of every head, and its labels, at measured steps of one training, on the same "
        "inputs.",
        OURS,
    ),
    "value": Term(
        "number over training",
        "The number of a head at a step, with its interval over documents.",
        OURS,
    ),
    "birth": Term(
        "birth of a label",
        "The pair of measured steps between which a head gets a label: it lacks the label at the "
        "first and has it at the second.",
        OURS,
    ),
    "flicker": Term(
        "flicker",
        "A label that is there at a single measured step and gone at the next.",
        OURS,
    ),
}
LABELS = {"value": "{choice}"}
