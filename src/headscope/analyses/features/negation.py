"""Which words negate, in which language?

Whole words, compared without regard to case and to the shape of the apostrophe. English: the list
of Kovaleva et al. (2019, §4.4) with the forms of "not" that it leaves out ("doesn't", "cannot", and
"n't", which treebanks split off); like theirs it has neither "no" nor "nobody". The other lists are
ours; they leave out words that mostly mean something else, such as French "personne".
"""

from __future__ import annotations

import unicodedata

from headscope.run.analysis import check_option

WORDS = {
    "de": (
        "nicht", "nichts", "nie", "niemals", "niemand", "niemanden", "niemandem", "nirgends",
        "nirgendwo", "kein", "keine", "keinen", "keinem", "keiner", "keines", "keins", "weder",
    ),
    "en": (
        "neither", "nor", "not", "never", "none", "nothing", "nowhere", "n't", "cannot", "ain't",
        "aren't", "can't", "couldn't", "didn't", "doesn't", "don't", "hadn't", "hasn't", "haven't",
        "isn't", "mightn't", "mustn't", "needn't", "shan't", "shouldn't", "wasn't", "weren't",
        "won't", "wouldn't",
    ),
    "es": (
        "no", "ni", "nunca", "jamás", "nada", "nadie", "ningún", "ninguno", "ninguna", "tampoco",
    ),
    "fr": (
        "ne", "n'", "pas", "non", "ni", "jamais", "rien", "aucun", "aucune", "nul", "nulle",
        "guère",
    ),
    "it": (
        "non", "né", "mai", "niente", "nulla", "nessun", "nessuno", "nessuna", "nessun'", "neanche",
        "nemmeno", "neppure",
    ),
    "nl": ("niet", "niets", "nooit", "niemand", "nergens", "geen", "noch"),
    "pl": (
        "nie", "ani", "nigdy", "nikt", "nikogo", "nikomu", "nic", "niczego", "niczym", "nigdzie",
        "żaden", "żadna", "żadne",
    ),
    "pt": (
        "não", "nem", "nunca", "jamais", "nada", "ninguém", "nenhum", "nenhuma", "tampouco",
    ),
    "ru": (
        "не", "ни", "нет", "никогда", "никто", "никого", "никому", "никем", "ничто", "ничего",
        "ничему", "ничем", "нигде", "никуда",
    ),
    "sv": ("inte", "ej", "icke", "aldrig", "ingen", "inget", "inga", "ingenting", "ingenstans"),
}  # fmt: skip
NONE = "none"
LANGUAGES = (*WORDS, NONE)

_APOSTROPHES = dict.fromkeys(map(ord, "’ʼ＇"), "'")


def negation_words(language: str, more: str = "") -> frozenset[str]:
    """The words that negate, as `plain` writes them.

    language  a key of WORDS, or "none" for no list
    more      further words, separated by commas
    raises    ValueError for a language that has no list
    """
    check_option("language", language, LANGUAGES)
    if not isinstance(more, str):
        raise ValueError(f"negation is {more!r}; wanted words separated by commas")
    own = (word.strip() for word in more.split(","))
    return frozenset(plain(word) for word in (*WORDS.get(language, ()), *own) if word)


def plain(word: str) -> str:
    """A word without what does not matter: case, shape of apostrophes, encoding of accents."""
    return unicodedata.normalize("NFC", word.casefold()).translate(_APOSTROPHES)
