"""Names of dependency relations in running text, such as “direct object → verb”.

Names for the labels of Universal Dependencies and of Stanford Dependencies (the labels of Clark et
al. 2019, Table 1, and of spaCy's English models); any other label stands for itself, in quotes.
"""

import xarray as xr

FROM_DEPENDENT = "dependent_to_head"
NO_SYNTAX = ("root", "punct", "P")  # no head finds the root; punctuation hangs by convention
LEAST_WORDS = 25  # ours: of fewer words, an accuracy says little
# The first of the relations in a result.
TOTALS = {
    "all": "any word → its head",
    "all_but_root_and_punctuation": "any word but roots and punctuation → its head",
}

# the word that is depended on → {what a word is: its labels}
_NAMES = {
    "verb": {
        "subject": "nsubj", "passive subject": "nsubj:pass nsubjpass", "clausal subject": "csubj",
        "clausal passive subject": "csubj:pass csubjpass", "direct object": "obj dobj",
        "indirect object": "iobj dative", "oblique": "obl", "agent": "obl:agent agent",
        "time": "obl:tmod tmod", "adverbial noun phrase": "npadvmod obl:npmod",
        "expletive": "expl", "auxiliary": "aux", "passive auxiliary": "aux:pass auxpass",
        "subordinator": "mark", "adverbial clause": "advcl", "clausal complement": "ccomp",
        "open clausal complement": "xcomp", "adjectival complement": "acomp", "attribute": "attr",
        "object predicate": "oprd", "particle": "compound:prt prt", "vocative": "vocative",
    },
    "noun": {
        "determiner": "det", "predeterminer": "det:predet predet", "adjective": "amod",
        "nominal modifier": "nmod", "possessor": "nmod:poss poss", "numeral": "nummod num",
        "compound modifier": "compound nn", "case marker": "case", "classifier": "clf",
        "apposition": "appos", "clausal modifier": "acl",
        "relative clause": "acl:relcl relcl rcmod", "infinitival modifier": "infmod",
        "participial modifier": "partmod",
    },
    "preposition": {"object of preposition": "pobj", "clausal complement": "pcomp"},
    "modified word": {
        "adverb": "advmod", "negation": "neg", "preposition": "prep",
        "quantifier modifier": "quantmod",
    },
    "predicate": {"copula": "cop"},
    "possessor": {"possessive marker": "possessive"},
    "first conjunct": {"conjunct": "conj"},
    "conjunct": {"conjunction": "cc", "preconjunction": "preconj cc:preconj"},
    "first word": {"fixed expression": "fixed mwe", "name part": "flat"},
    "main clause": {"parataxis": "parataxis"},
}  # fmt: skip
_WORDS = {
    label: (name, head)
    for head, names in _NAMES.items()
    for name, labels in names.items()
    for label in labels.split()
}


def arrow(label: str, direction: str) -> str:
    """The direction of a head in words: `direct object → verb`, `verb → its object`."""
    if label in TOTALS:
        return TOTALS[label] if direction == FROM_DEPENDENT else "head → its dependent"
    dependent, head = _words(label)
    if direction == FROM_DEPENDENT:
        return f"{dependent} → {head or 'its head'}"
    repeats = head in dependent.split()  # not "preposition → its object of preposition"
    return f"{head or 'head'} → {'' if repeats else 'its '}{dependent}"


def _words(label: str) -> tuple[str, str]:
    """The dependent, a subtype's label in brackets, and the word it depends on; '' if unknown."""
    if label in _WORDS:
        return _WORDS[label]
    base = label.partition(":")[0]
    if base in _WORDS:
        name, head = _WORDS[base]
        return f"{name} ({label})", head
    return f"‘{label}’", ""


def frequent_relations(dependency: xr.Dataset, *, least: int = LEAST_WORDS) -> list[int]:
    """Positions of the relations of at least `least` words, the most frequent first.

    TOTALS, root and punctuation are left out: the paper does not show them, and no head is known
    by them.
    """
    names = [str(name) for name in dependency["relation"].values]
    counts = dependency["count"].values
    return [
        at
        for at in range(len(TOTALS), len(names))
        if counts[at] >= least and names[at].partition(":")[0] not in NO_SYNTAX
    ]
