"""Claims that a head looks for a kind of words, or from one kind to another; the label rules.

Kovaleva et al. (2019), sections 4.4 and 4.5, give no threshold. Their number, the largest weight,
is the larger the more words there are to choose from; a claim rests on all that the words get. The
weighted norm has no ceiling, so that an effect would be on no common scale: no claims by it.
"""

from headscope.analyses.features.rules import FEATURES, PAIR_NAMES
from headscope.analyses.language.specific import SPECIFIC, specific_heads
from headscope.claims.claim import Claim
from headscope.claims.dictionary import name
from headscope.claims.plan import LabelRule
from headscope.claims.reading import Reading
from headscope.claims.relation_names import LEAST_WORDS
from headscope.claims.terms import KOVALEVA, OURS
from headscope.core.wording import percent

FEATURE_SHARE = 0.1  # ours: of the attention of all tokens
PAIRS = ("subject_to_verb", "verb_to_subject", "noun_to_pronoun", "pronoun_to_noun")
PAIR_SHARE = 0.25  # ours: of the attention of a word
OVER = f"; {LEAST_WORDS} inputs or more"
FEATURE_RULES = {
    "feature": LabelRule(
        "kind of words",
        number="attention of all tokens to nouns, verbs, pronouns, subjects, objects or negation",
        least=FEATURE_SHARE,
        source=f"{OURS}, after {KOVALEVA}, §4.4",
        words=True,
        asks=SPECIFIC.format(
            rivals="what words beside those of the kind get, and what the kind gets for the sake "
            "of other kinds",
            cells="kinds",
        )
        + OVER,
        predicts=lambda claim: FEATURES[claim.about],
    ),
}
PAIR_RULES = {
    "pair": LabelRule(
        "pair of words",
        number="attention from subject to verb, from noun to pronoun, or back",
        least=PAIR_SHARE,
        source=f"{OURS}, after {KOVALEVA}, §4.5",
        words=True,
        asks=SPECIFIC.format(
            rivals="what words beside the first give to the second, and what the pair gets when it "
            "is moved by a token",
            cells="pairs",
        )
        + OVER,
        predicts=lambda claim: PAIR_NAMES[claim.about],
    ),
}


def feature_claims(run: Reading) -> list[Claim]:
    """One claim per head and kind of words that gets more than place and other kinds explain."""
    said = "looks for {words}: they get {share} of the attention of all tokens"
    return _claims(run, "feature", goal="to {words}", said=said)


def pair_claims(run: Reading) -> list[Claim]:
    """One claim per head and pair of kinds that gets more than words beside it."""
    said = "attends from {words}: {share} of the attention of the one goes to the other"
    return _claims(run, "pair", goal="{words}", said=said)


def _claims(run: Reading, kind: str, *, goal: str, said: str) -> list[Claim]:
    """The claims of a kind; goal and said are their words, to be filled in."""
    dataset = run.data
    if "reference" not in dataset:
        return []
    made, n = [], run.documents("attention")
    choices = [str(choice) for choice in dataset[str(dataset["mass"].dims[-1])].values]
    names, tests = [goal.format(words=name(one)) for one in choices], dataset["reference"].size
    for one in specific_heads(run, dataset, "mass", kind, names, tests=tests):
        choice = choices[one.cell[0]]
        if dataset["count"].sel({kind: choice}) >= LEAST_WORDS:
            ordinary = percent(one.reference)
            sentence = said.format(words=name(choice), share=one.percent)
            made.append(
                one.claim(
                    f"{sentence}, {ordinary} without knowledge of them",
                    n=n,
                    label=f"{one.name}, {one.percent}, ordinary {ordinary}",
                    analysis=run.question.name,
                    about=choice,
                )
            )
    return made
