"""The question dependency: which head finds the syntactic head, relation by relation?

Its words are also those that all linguistic questions share.
"""

from headscope.analyses.language import MEASURE, PIECES
from headscope.claims.plan import PicturePlan
from headscope.claims.question import Option, Question
from headscope.claims.terms import CLARK, OURS, Term, terms_of

PAPER = f"{CLARK}, §4.2"
QUESTION = Question(
    name="dependency",
    package=__name__,
    title="Words whose syntactic head is found",
    place=100,
    summary="which head finds the syntactic head, for every relation",
    source="Clark et al. 2019, §4.2",
    needs=frozenset({"attention", "words", "trees"}),
    options={
        "relations": Option(""),
        "subtypes": Option("keep", ("keep", "fold")),
        "possessive": Option("stanford", ("stanford", "universal", "off")),
        "pieces": PIECES,
        "measure": MEASURE,
    },
    predicts="rules:rules",
    measure="measure:Dependency",
    figures=(
        PicturePlan(
            name="best_heads",
            title="The best heads",
            panels="figure:best_head_panels",
            caption="figure:best_head_caption",
            columns=1,
        ),
        PicturePlan(
            name="dependency_heads",
            title="Which heads find which relation",
            panels="figure:heat_maps",
            caption="figure:heat_map_caption",
            columns=4,
            sheets="figure:sheets",
        ),
        PicturePlan(
            name="example_sentences",
            title="The best heads at work",
            panels="figure_sentences:panels",
            caption="figure_sentences:caption",
            beside=("examples",),
            columns=1,
            wide=True,
        ),
    ),
    terms={
        **terms_of(
            PAPER,
            {
                "dependency": (
                    "syntactic head",
                    "The word that another one depends on, as the treebank has it; an attention "
                    "head finds it if it is the word that it attends to most, or that attends to "
                    "it most.",
                ),
                "dependent_to_head": (
                    "from dependent to head",
                    "Of all other words, the one that the dependent attends to most is taken for "
                    "its syntactic head.",
                ),
                "head_to_dependent": (
                    "from head to dependent",
                    "Of all other words, the one that attends to the dependent most is taken for "
                    "its syntactic head.",
                ),
                "accuracy": (
                    "accuracy",
                    "The share of words whose syntactic head is found, or of "
                    "mentions whose antecedent is.",
                ),
            },
        ),
        "all_but_root_and_punctuation": Term(
            "all but root and punctuation",
            "All words with a syntactic head but punctuation; “all” has both, as in the paper, "
            "though no attention head can find the head of a root.",
            f"{PAPER}, whose “All” has both",
        ),
        "offset_accuracy": Term(
            "fixed offset",
            "The rule that every word has its syntactic head so many words to its "
            "right (+) or left (−).",
            f"{PAPER}; offsets from −5 to 5 are ours",
        ),
        "baseline": Term(
            "baseline",
            "What a rule without a model finds: the best fixed offset for "
            "syntax, rule systems for coreference.",
            PAPER,
        ),
        **terms_of(
            OURS,
            {
                "held_out": (
                    "held out",
                    "A head is chosen on one half of the documents and scored on the other, both "
                    "ways; the best of many heads looks better on the data that it was chosen on.",
                ),
                "advantage": (
                    "advantage",
                    "Held-out accuracy of heads less that of the baseline on the same documents; "
                    "a head beats the baseline if the interval of this difference lies above 0.",
                ),
                "head_in_another_input": (
                    "with their syntactic head in another input",
                    "Words of a sentence that was read in several windows; they are not asked "
                    "about.",
                ),
                "no_token": (
                    "without a token",
                    "Words (or mentions by their head word) of which the tokenizer left nothing.",
                ),
            },
        ),
    },
    claims="claims:claims",
    rules="claims:RULES",
    metrics="claims:metrics",
    section="figure:SECTIONS",
    tables="tables:tables",
    card="claims:CARD",
)
