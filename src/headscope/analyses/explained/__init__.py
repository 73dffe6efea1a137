"""The question explained: how much of what a head does do readable rules predict?"""

from headscope.claims.plan import Grid, PicturePlan
from headscope.claims.question import Question
from headscope.claims.terms import OURS, terms_of

QUESTION = Question(
    name="explained",
    package=__name__,
    title="Explained by rules",
    place=15,
    predicts="rules:RULES",
    measure="measure:Explained",
    summary="which readable rules predict where a head looks, and how much of it",
    source="METHODS; after Hayes, Li and Andreas 2026",
    needs=frozenset({"attention", "whole_rows"}),
    controlled=True,
)
