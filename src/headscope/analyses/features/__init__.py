"""The questions on kinds of words: what they receive, from [CLS] too, and what pairs of them do."""

from headscope.analyses.features.word_types import LANGUAGE
from headscope.analyses.language import MEASURE
from headscope.claims.plan import PicturePlan
from headscope.claims.question import Option, Question
from headscope.claims.terms import KOVALEVA, terms_of

QUESTION = Question(
    name="features",
    package=__name__,
    title="To kinds of words",
    place=130,
    summary="attention to nouns, verbs, subjects, negation and other kinds",
    source="Kovaleva et al. 2019, §4.4",
    needs=frozenset({"attention", "words", "tags"}),
    options={
        "absent": Option("skip", ("skip", "zero")),
        "language": LANGUAGE,
        "negation": Option("", deep=True),
        "measure": MEASURE,
    },
    predicts="rules:RULES",
    measure="measure:Features",
    figures=(
        PicturePlan(
            name="features_by_layer",
            title="What kinds of words receive",
            panels="figure:panels",
            caption="figure:caption",
            columns=3,
        ),
    ),
    terms=terms_of(
        f"{KOVALEVA}, §4.4",
        {
            "noun": (
                "nouns",
                "Common and proper nouns, by tag: Penn’s NN, NNS, NNP, NNPS, or NOUN "
                "and PROPN of Universal Dependencies.",
            ),
            "verb": (
                "verbs",
                "Verbs by tag: Penn’s VB and its forms, or VERB and AUX of Universal "
                "Dependencies; be, have and do are among them.",
            ),
            "pronoun": (
                "pronouns",
                "Pronouns by tag: Penn’s PRP and PRP$, or PRON of Universal Dependencies.",
            ),
            "subject": (
                "subjects",
                "Words whose relation to their head is that of a subject, an "
                "expletive or the agent of a passive.",
            ),
            "object": (
                "objects",
                "Words whose relation to their head is that of a direct or "
                "indirect object (or, in older English labels, of a predicate complement).",
            ),
            "negation": (
                "negation",
                "Words that negate, such as “not”, “never” and “nothing”, by "
                "a list for each language.",
            ),
        },
    ),
    labels={"attention": "largest attention to {choice}"},
    compared="Attention to kinds of words",
    claims="claims:feature_claims",
    rules="claims:FEATURE_RULES",
    section="figure:SECTIONS",
)
CLS_QUESTION = Question(
    name="cls_attention",
    package=__name__,
    place=140,
    measure="measure:ClsAttention",
    summary="what [CLS] attends to in the last layer",
    source="Kovaleva et al. 2019, §4.5",
    needs=frozenset({"attention", "words", "tags"}),
    options={"language": LANGUAGE, "negation": Option("", deep=True), "measure": MEASURE},
    figures=(
        PicturePlan(
            name="cls_attention",
            title="What the last [CLS] looks at",
            panels="figure:cls_panels",
            caption="figure:cls_caption",
            columns=1,
        ),
    ),
)
PAIRS_QUESTION = Question(
    name="pairs",
    package=__name__,
    title="Between words",
    place=150,
    measure="measure:Pairs",
    summary="attention between subject and verb, noun and pronoun",
    source="Kovaleva et al. 2019, §4.5",
    needs=frozenset({"attention", "words", "tags"}),
    options={"pairing": Option("product", ("product", "zip")), "measure": MEASURE},
    figures=(
        PicturePlan(
            name="pairs",
            title="Subjects and verbs, nouns and pronouns",
            panels="figure:pair_panels",
            caption="figure:pair_caption",
        ),
    ),
    terms=terms_of(
        f"{KOVALEVA}, §4.5",
        {
            "subject_to_verb": (
                "subject to verb",
                "The largest attention from a token of a subject to a token of its verb.",
            ),
            "verb_to_subject": (
                "verb to subject",
                "The largest attention from a token of a verb to a token of its subject.",
            ),
            "noun_to_pronoun": (
                "noun to pronoun",
                "The largest attention from a noun of the sentence to a pronoun of it, whatever "
                "the pronoun refers to.",
            ),
            "pronoun_to_noun": (
                "pronoun to noun",
                "The largest attention from a pronoun of the sentence to a noun of it, whatever "
                "the pronoun refers to.",
            ),
        },
    ),
    labels={"attention": "attention, {choice}"},
    predicts="rules:PAIR_RULES",
    claims="claims:pair_claims",
    rules="claims:PAIR_RULES",
)
