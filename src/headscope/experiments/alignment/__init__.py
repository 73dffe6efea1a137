"""Word alignment by cross-attention: which word translates which (Kobayashi et al. 2020, §5)."""

from headscope.claims.plan import PicturePlan
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
    figures=(
        PicturePlan(
            name="alignment",
            title="Which words does it align?",
            panels="section:panels",
            caption="Alignment error rate (0 % is perfect) of cross-attention. (a, b) Of each "
            "layer: links by the mean weight of its heads, and by the norm of the sum of their "
            "weighted vectors. (c, d) Of each head by norms, against its mean norm ‖αf(x)‖, and "
            "Spearman’s ρ. Bands, whiskers and brackets: 95 % intervals over sentence pairs; "
            "{over}. After Kobayashi et al. (2020), Table 3.",
            id="part-alignment",
            heading="Which layers and heads align words?",
            text="A word of the translation is linked to the source word that gets most of a "
            "head’s, or a layer’s, cross-attention: by weights, or by the norms of the weighted "
            "vectors. Links to the closing sign are left out.",
            tables=("section:rates_table",),
        ),
    ),
    opening="section:OPENING",
    terms=TERMS,
    findings=("section:findings",),
)
