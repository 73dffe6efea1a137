"""Which words of a sentence are nouns, verbs, pronouns, subjects, objects and negation?

Nouns, verbs and pronouns by tag, as Kovaleva et al. (2019, §4.4): Penn's NN*, VB* and PRP, PRP$. A
sentence is taken to be tagged with Penn's tags if every language-specific tag (XPOS) in it is one
of theirs; else the universal tags (UPOS) decide, so that another tagset's PRP or NN is not mistaken
for Penn's. By UPOS, nouns are NOUN and PROPN, pronouns PRON, and verbs VERB and AUX, because Penn's
VB* has be, have and do in it; unlike Penn's it then has modals too, and PRON relative, indefinite
and demonstrative pronouns. Subjects and objects by relation: those of spaCy's English labels, of
Stanford Dependencies, and of Universal Dependencies with all subtypes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headscope.analyses.features.negation import plain
from headscope.corpus.document import Word

TYPES = ("noun", "verb", "pronoun", "subject", "object", "negation")
NOUN, VERB, PRONOUN, SUBJECT, OBJECT, NEGATION = range(len(TYPES))
# The tags of the Penn Treebank, and those that OntoNotes, the English Web Treebank and spaCy added.
PENN = frozenset((
    "CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS", "LS", "MD", "NN", "NNS", "NNP",
    "NNPS", "PDT", "POS", "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO", "UH", "VB", "VBD",
    "VBG", "VBN", "VBP", "VBZ", "WDT", "WP", "WP$", "WRB", "#", "$", ".", ",", ":", "``", "''",
    '"', "(", ")", "-LRB-", "-RRB-", "-LSB-", "-RSB-", "ADD", "AFX", "GW", "HYPH", "NFP", "XX",
    "_SP",
))  # fmt: skip
_BY_PENN = dict.fromkeys(("NN", "NNS", "NNP", "NNPS"), NOUN)
_BY_PENN |= dict.fromkeys(("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"), VERB)
_BY_PENN |= dict.fromkeys(("PRP", "PRP$"), PRONOUN)
_BY_UPOS = {"NOUN": NOUN, "PROPN": NOUN, "VERB": VERB, "AUX": VERB, "PRON": PRONOUN}

NOMINAL_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_BY_RELATION = dict.fromkeys((*NOMINAL_SUBJECTS, "csubj", "csubjpass", "agent", "expl"), SUBJECT)
_BY_RELATION |= dict.fromkeys(("obj", "dobj", "iobj", "dative", "attr", "oprd"), OBJECT)
_AGENT = "obl:agent"

Bools = npt.NDArray[np.bool_]


def word_types(words: Sequence[Word], negation: frozenset[str]) -> Bools:
    """[word, type] whether each word is of each of TYPES.

    negation  the words that negate, from `negation_words`
    """
    found = np.zeros((len(words), len(TYPES)), bool)
    penn = all(word.xpos in PENN for word in words if word.xpos)
    for at, word in enumerate(words):
        tag = _BY_PENN.get(word.xpos) if penn and word.xpos else _BY_UPOS.get(word.upos or "")
        role = _role(word)
        if tag is not None:
            found[at, tag] = True
        if role is not None:
            found[at, role] = True
        if plain(word.form) in negation:
            found[at, NEGATION] = True
    return found


def subjects_of_verbs(words: Sequence[Word], types: Bools) -> list[tuple[int, int]]:
    """(subject, verb): the words whose relation is a nominal subject and whose head is a verb.

    types  [word, type] from `word_types`
    """
    return [
        (at, word.head)
        for at, word in enumerate(words)
        if word.head >= 0 and types[word.head, VERB] and _base(word) in NOMINAL_SUBJECTS
    ]


def _role(word: Word) -> int | None:
    """SUBJECT, OBJECT or None; a root is neither, whatever its label."""
    if word.head < 0:
        return None
    return SUBJECT if word.relation == _AGENT else _BY_RELATION.get(_base(word))


def _base(word: Word) -> str:
    """The relation without its subtype: nsubj for nsubj:pass."""
    return (word.relation or "").partition(":")[0]
