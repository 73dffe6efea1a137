"""The question coreference: which head finds an antecedent?"""

from headscope.analyses.language import MEASURE, PIECES
from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question
from headscope.claims.terms import CLARK, OURS, Term, terms_of

PAPER = f"{CLARK}, §4.3"
QUESTION = Question(
    name="coreference", package=__name__, title="Coreference", place=110,
    summary="which head finds the antecedent of a mention, beside rule systems",
    source="Clark et al. 2019, §4.3", needs=frozenset({"attention", "words", "mentions"}),
    options={"pieces": PIECES, "measure": MEASURE},
    predicts="rules:rules",
    measure="measure:Coreference", figures=(
        PicturePlan(
            name="coreference", title="The best heads at coreference", panels="figure:panels",
            caption="figure:caption",
        ),
    ),
    terms={
        "coreference": Term(
            "coreference", "Which mentions speak of the same person or thing; a head finds the "
            "antecedent of a mention if the mention’s head word attends, of all head words of "
            "mentions before it, most to one of the same entity.",
            f"{PAPER}; candidates as headscope chose them",
        ),
        **terms_of(PAPER, {
            "accuracy_strict": ("accuracy, strict", "Share of mentions whose head word attends, of "
                "all other words of the input, most to the head word of an antecedent."),
            "proper": ("names", "Mentions whose head word is a proper noun."),
            "nominal": ("noun phrases", "Mentions whose head word is neither a pronoun nor a "
                "proper noun."),
            "nearest": ("nearest mention", "The rule that the nearest mention before is the "
                "antecedent."),
            "head_match": ("head match", "The rule that the nearest mention before with the same "
                "head word is the antecedent; without one it has no answer."),
            "rule_based": ("rules", "The nearest mention before with the same words; else with the "
                "same head word; else that agrees in person, number and gender as far as English "
                "pronouns show them; else any."),
        }),
        **terms_of(OURS, {
            "crosses_window": ("cut by the end of an input", "Mentions of which a part is in "
                "another window; they are not asked about."),
            "no_antecedent": ("of what was not mentioned before", "Mentions of an entity that no "
                "earlier mention in the same input speaks of."),
            "same_head_word": ("with the head word of a longer one", "Mentions within a longer "
                "mention that has the same head word."),
        }),
    },
    labels={
        "accuracy": "antecedent found, {choice}",
        "accuracy_strict": "antecedent found among all words, {choice}",
    },
    marks={
        "nearest": ("grey", "D"), "head_match": ("orange", "s"), "rule_based": ("vermillion", "^"),
    },
    claims="claims:claims", rules="claims:RULES", section="figure:SECTIONS", tables="figure:tables",
)  # fmt: skip
