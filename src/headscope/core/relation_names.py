"""Names of dependency relations in running text, such as “direct object → verb”.

Names for the labels of Universal Dependencies and of Stanford Dependencies (the labels of Clark et
al. 2019, Table 1, and of spaCy's English models); any other label stands for itself, in quotes.
"""

from __future__ import annotations

import xarray as xr

FROM_DEPENDENT = "dependent_to_head"
NO_SYNTAX = ("root", "punct", "P")  # no head finds the root; punctuation hangs by convention
LEAST_WORDS = 25  # ours: of fewer words, an accuracy says little
# The first of the relations in a result.
TOTALS = {
    "all": "any word → its head",
    "all_but_root_and_punctuation": "any word but roots and punctuation → its head",
}

# the word that is depended on → {label: what a word with this label is}
_NAMES = {
    "verb": {
        "nsubj": "subject",
        "nsubj:pass": "passive subject",
        "nsubjpass": "passive subject",
        "csubj": "clausal subject",
        "csubj:pass": "clausal passive subject",
        "csubjpass": "clausal passive subject",
        "obj": "direct object",
        "dobj": "direct object",
        "iobj": "indirect object",
        "dative": "indirect object",
        "obl": "oblique",
        "obl:agent": "agent",
        "agent": "agent",
        "obl:tmod": "time",
        "tmod": "time",
        "npadvmod": "adverbial noun phrase",
        "obl:npmod": "adverbial noun phrase",
        "expl": "expletive",
        "aux": "auxiliary",
        "aux:pass": "passive auxiliary",
        "auxpass": "passive auxiliary",
        "mark": "subordinator",
        "advcl": "adverbial clause",
        "ccomp": "clausal complement",
        "xcomp": "open clausal complement",
        "acomp": "adjectival complement",
        "attr": "attribute",
        "oprd": "object predicate",
        "compound:prt": "particle",
        "prt": "particle",
        "vocative": "vocative",
    },
    "noun": {
        "det": "determiner",
        "det:predet": "predeterminer",
        "predet": "predeterminer",
        "amod": "adjective",
        "nmod": "nominal modifier",
        "nmod:poss": "possessor",
        "poss": "possessor",
        "nummod": "numeral",
        "num": "numeral",
        "compound": "compound modifier",
        "nn": "compound modifier",
        "case": "case marker",
        "clf": "classifier",
        "appos": "apposition",
        "acl": "clausal modifier",
        "acl:relcl": "relative clause",
        "relcl": "relative clause",
        "rcmod": "relative clause",
        "infmod": "infinitival modifier",
        "partmod": "participial modifier",
    },
    "preposition": {
        "pobj": "object of preposition",
        "pcomp": "clausal complement",
    },
    "modified word": {
        "advmod": "adverb",
        "neg": "negation",
        "prep": "preposition",
        "quantmod": "quantifier modifier",
    },
    "predicate": {"cop": "copula"},
    "possessor": {"possessive": "possessive marker"},
    "first conjunct": {"conj": "conjunct"},
    "conjunct": {"cc": "conjunction", "preconj": "preconjunction", "cc:preconj": "preconjunction"},
    "first word": {"fixed": "fixed expression", "mwe": "fixed expression", "flat": "name part"},
    "main clause": {"parataxis": "parataxis"},
}
_WORDS = {label: (name, head) for head, names in _NAMES.items() for label, name in names.items()}


def arrow(label: str, direction: str) -> str:
    """From where to where a head looks: `direct object → verb` or `verb → its direct object`.

    label  as in the treebank, printable
    """
    if label in TOTALS:
        return TOTALS[label] if direction == FROM_DEPENDENT else "head → its dependent"
    dependent, head = _words(label)
    if direction == FROM_DEPENDENT:
        return f"{dependent} → {head or 'its head'}"
    repeats = head in dependent.split()  # not "preposition → its object of preposition"
    return f"{head or 'head'} → {'' if repeats else 'its '}{dependent}"


def _words(label: str) -> tuple[str, str]:
    """The dependent, and the word it depends on, '' if not known.

    A subtype without a name of its own has its label in brackets.
    """
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
