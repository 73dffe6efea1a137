"""Word alignment by cross-attention: which word translates which (Kobayashi et al. 2020, §5)."""

from headscope.claims.question import Question
from headscope.claims.terms import KOBAYASHI20, Term

SOURCE = f"{KOBAYASHI20}, §5"
TERMS = {
    "aer": Term(
        "alignment error rate",
        "How far links A between the words of a sentence and its "
        "translation are from those that people drew, sure ones S and possible ones P: 1 − (|A∩P| "
        "+ |A∩S|) / (|A| + |S|), from 0 to 1, all sentences taken together.",
        SOURCE,
    ),
    "AWO": Term(
        "AWO",
        "Alignment with output: a word of the translation is linked to the source "
        "word that cross-attention looks at most while the word is generated.",
        SOURCE,
    ),
    "AWI": Term(
        "AWI",
        "Alignment with input: the same while the decoder reads the word, one step later.",
        SOURCE,
    ),
    "mean_norm": Term(
        "mean weighted norm",
        "The length of what a head adds for a token, ‖αf(x)‖, mean over all tokens that look and "
        "all that are looked at.",
        SOURCE,
    ),
}
ALIGNMENT = Question(
    package=__name__,
    name="alignment",
    place=350,
    figures="section:FIGURES",
    section="section:SECTIONS",
    opening="section:OPENING",
    terms=TERMS,
    findings="section:findings",
)
