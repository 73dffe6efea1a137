"""The words of results, figures and reports: their meaning, and how they are written.

Terms come from `claims.terms` (of attention at large) and from every question (`Question.terms`).
"""

from collections.abc import Iterable

from headscope.claims.question import Question, named, parts
from headscope.claims.terms import TERMS, Term, head_term

UNITS = {"probability": "share", "nats": "nats", "tokens": "tokens", "1": ""}


def terms(among: Iterable[Question] | None = None) -> dict[str, Term]:
    """Word of the data -> its term: a general one, else that of the first question with one.

    among  these questions alone
    """
    known = {"head": head_term(), **TERMS}
    for words in parts("terms", among):
        known |= {word: term for word, term in words.items() if word not in known}
    return known


def name(word: str) -> str:
    """The plain name of a word of the data; the word itself, with spaces, without an entry."""
    if word in (known := {"head": head_term(), **TERMS}):
        return known[word].name
    entry = next((words[word] for words in parts("terms") if word in words), None)
    return entry.name if entry is not None else word.replace("_", " ")


def label(group: str, variable: str, choice: str = "", *, long_name: str = "") -> str:
    """The label of an axis or column for `variable` of `group` at `choice`."""
    question = named(group)
    labels = {} if question is None else question.part("labels", {})
    for key in ((variable, choice), variable):
        if key in labels:
            words: str = labels[key]
            return words.format(choice=name(choice))
    start = long_name or name(variable)
    return f"{start}, {name(choice)}" if choice else start


def unit_label(unit: str) -> str:
    """A unit as written for readers; empty for pure numbers."""
    return UNITS.get(unit, unit)
