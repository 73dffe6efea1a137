"""Claims about the heads that find antecedents; the label rule."""

import numpy as np

from headscope.analyses.coreference.rules import EARLIER, OF_KINDS
from headscope.analyses.language.specific import SPECIFIC, by_norm, specific_heads
from headscope.claims.claim import Claim
from headscope.claims.dictionary import name as term_name
from headscope.claims.plan import LabelRule
from headscope.claims.reading import Reading
from headscope.claims.terms import CLARK, OURS
from headscope.core.display import printable
from headscope.core.wording import percent

MENTIONS = {
    "all": "mentions",
    "pronoun": "pronouns",
    "proper": "proper names",
    "nominal": "common noun phrases",
}
NAME = "coreference"
LEAST_MENTIONS = 50  # ours
RULES = {
    "coreference": LabelRule(
        "coreference",
        number="mentions whose antecedent gets the most attention",
        least=0.0,
        source=f"{OURS}, after {CLARK}, §4.3",
        words=True,
        asks=SPECIFIC.format(
            rivals="all rules, what the nearest words find that are no mentions, and what it finds "
            "of other kinds of mention",
            cells="kinds",
        )
        + f"; {LEAST_MENTIONS} mentions or more; it attends to antecedents more than those do",
        predicts=lambda claim: OF_KINDS.get(claim.about, EARLIER),
    ),
}


def claims(run: Reading) -> list[Claim]:
    """One claim per head and kind of mention at which it beats all rules and its other words."""
    dataset = run.data
    if "reference" not in dataset:
        return []
    here = dataset.isel(mention_type=np.flatnonzero(dataset["count"].values >= LEAST_MENTIONS))
    kinds = [str(kind) for kind in here["mention_type"].values]
    baseline = here["baseline"].transpose("system", ...).values
    made, n = [], run.documents("accuracy")
    mentions = [MENTIONS.get(kind, printable(kind)) for kind in kinds]
    names, tests = [f"coreference of {words}" for words in mentions], here["reference"].size
    for one in specific_heads(run, here, "accuracy", NAME, names, tests=tests):
        words, rules = mentions[one.cell[0]], baseline[:, one.cell[0]]
        best = int(rules.argmax())
        others = here["from_others"].values[one.layer, one.head, one.cell[0]]
        sentence = (
            f"coreference: antecedent found for {one.percent} of "
            f"{int(here['count'][one.cell[0]]):,} {words}{by_norm(dataset)}, "
            f"{term_name(str(dataset['system'].values[best]))} {percent(float(rules[best]))}, "
            f"nearest words that are no mentions {percent(float(others))}"
        )
        about = kinds[one.cell[0]]
        made.append(one.claim(sentence, n=n, analysis=NAME, about=about, brief="coreference"))
    return made
