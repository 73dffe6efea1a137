"""Which words of a sentence are nouns, verbs, pronouns, subjects, objects and negation.

Nouns, verbs and pronouns by tag, as Kovaleva et al. (2019, §4.4): Penn's NN*, VB* and PRP, PRP$. A
sentence is taken to be tagged with Penn's tags if every language-specific tag (XPOS) in it is one
of theirs; else the universal tags (UPOS) decide, so that another tagset's PRP or NN is not mistaken
for Penn's. By UPOS, nouns are NOUN and PROPN, pronouns PRON, and verbs VERB and AUX, because Penn's
VB* has be, have and do in it; unlike Penn's it then has modals too, and PRON relative, indefinite
and demonstrative pronouns. Subjects and objects by relation: those of spaCy's English labels, of
Stanford Dependencies, and of Universal Dependencies with all subtypes.

Words that negate are whole words of a list for each language, compared without regard to case and
to the shape of the apostrophe. English: the list of Kovaleva et al. (2019, §4.4) with the forms of
"not" that it leaves out ("doesn't", "cannot", and "n't", which treebanks split off); like theirs it
has neither "no" nor "nobody". The other lists are ours;
they leave out words that mostly mean something else, such as French "personne".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headscope.claims.question import Option

if TYPE_CHECKING:
    from headscope.core.accumulators import Bools
    from headscope.corpus.document import Word

WORDS = {
    language: tuple(words.split())
    for language, words in {
        "de": "nicht nichts nie niemals niemand niemanden niemandem nirgends nirgendwo kein keine "
        "keinen keinem keiner keines keins weder",
        "en": "neither nor not never none nothing nowhere n't cannot ain't aren't can't couldn't "
        "didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't needn't shan't "
        "shouldn't wasn't weren't won't wouldn't",
        "es": "no ni nunca jamás nada nadie ningún ninguno ninguna tampoco",
        "fr": "ne n' pas non ni jamais rien aucun aucune nul nulle guère",
        "it": "non né mai niente nulla nessun nessuno nessuna nessun' neanche nemmeno neppure",
        "nl": "niet niets nooit niemand nergens geen noch",
        "pl": "nie ani nigdy nikt nikogo nikomu nic niczego niczym nigdzie żaden żadna żadne",
        "pt": "não nem nunca jamais nada ninguém nenhum nenhuma tampouco",
        "ru": "не ни нет никогда никто никого никому никем ничто ничего ничему ничем нигде никуда",
        "sv": "inte ej icke aldrig ingen inget inga ingenting ingenstans",
    }.items()
}
LANGUAGE = Option("en", (*WORDS, "none"))
_APOSTROPHES = dict.fromkeys(map(ord, "’ʼ＇"), "'")
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


def negation_words(language: str, more: str = "") -> frozenset[str]:
    """The words that negate, as `plain` writes them.

    language  a key of WORDS, or "none" for no list
    more      further words, separated by commas
    raises    ValueError for a language that has no list
    """
    LANGUAGE.check("language", language)
    if not isinstance(more, str):
        raise ValueError(f"negation is {more!r}; wanted words separated by commas")
    own = (word.strip() for word in more.split(","))
    return frozenset(plain(word) for word in (*WORDS.get(language, ()), *own) if word)


def plain(word: str) -> str:
    """A word without what does not matter: case, shape of apostrophes, encoding of accents."""
    return unicodedata.normalize("NFC", word.casefold()).translate(_APOSTROPHES)


def word_types(words: Sequence[Word], negation: frozenset[str]) -> Bools:
    """[word, type] whether each word is of each of TYPES; negation from `negation_words`."""
    import numpy as np  # here, as the question itself reads LANGUAGE above

    types = np.zeros((len(words), len(TYPES)), bool)
    penn = all(word.xpos in PENN for word in words if word.xpos)
    for at, word in enumerate(words):
        tag = _BY_PENN.get(word.xpos) if penn and word.xpos else _BY_UPOS.get(word.upos or "")
        kinds = (tag, _role(word), NEGATION if plain(word.form) in negation else None)
        types[at, [kind for kind in kinds if kind is not None]] = True
    return types


def subjects_of_verbs(words: Sequence[Word], types: Bools) -> list[tuple[int, int]]:
    """(subject, verb): nominal subjects whose head is a verb; types from `word_types`."""
    return [
        (at, word.head)
        for at, word in enumerate(words)
        if word.head >= 0 and types[word.head, VERB] and _base(word) in NOMINAL_SUBJECTS
    ]


def _role(word: Word) -> int | None:
    """SUBJECT, OBJECT or None; a root is neither, whatever its label."""
    if word.head < 0:
        return None
    return SUBJECT if word.relation == "obl:agent" else _BY_RELATION.get(_base(word))


def _base(word: Word) -> str:
    """The relation without its subtype: nsubj for nsubj:pass."""
    return (word.relation or "").partition(":")[0]
