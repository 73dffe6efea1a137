"""Which analyses are known, what they may need, and which of them are chosen.

Only the measure of a question that says nothing of its measure is imported for that.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from headscope.claims import question
from headscope.corpus.contents import ANNOTATIONS
from headscope.errors import InputError, unknown

if TYPE_CHECKING:
    from headscope.run.analysis import Analysis

# What an analysis may need of the model, and of the annotations of the corpus.
MODEL_NEEDS = frozenset(
    {
        "attention",
        "values",
        "projection",
        "residual",
        "queries_keys",
        "whole_rows",  # rows of attention sum to 1: no weight is left for no token
        "every_layer",  # all layers mix tokens by attention
    }
)
CORPUS_NEEDS = frozenset(ANNOTATIONS)
NEEDS = MODEL_NEEDS | CORPUS_NEEDS
Announced = TypeVar("Announced", bound="type[Analysis] | question.Question")


def register(announced: Announced) -> Announced:
    """Makes a question, or an analysis class without figures, known in this process.

    As a class decorator it gives the class back.

    raises  InputError if it needs what nobody provides, announces what is impossible, or has the
            name of another question
    """
    if isinstance(announced, question.Question):
        question.register(announced)
    else:
        _check_needs(announced)
        question.register(question.Question(name=announced.name, measure=announced))
    return announced


def known_analyses() -> dict[str, type[Analysis]]:
    """The measures of all questions by name; invalid ones of plug-ins are left out."""
    return {one.name: one.part("measure") for one in measured_questions()}


def measured_questions() -> list[question.Question]:
    """The questions with a measure, and its description; invalid ones are left out.

    Only the measure of one that says nothing of it is imported.
    """
    measured = []
    for one in question.questions():
        if one.measure is None:
            continue
        try:
            measured.append(_with_what_its_measure_says(one))
        except InputError as error:
            question.refuse_measure(one.name, f"{error}; it is left out")
    return measured


def _with_what_its_measure_says(announced: question.Question) -> question.Question:
    if announced.needs is not None:
        return announced
    kind = announced.part("measure")
    _check_needs(kind)
    options = {name: question.Option(value, deep=True) for name, value in options_of(kind).items()}
    return replace(
        announced, summary=kind.summary, source=kind.source, needs=kind.needs, options=options
    )


def _check_needs(kind: type[Analysis]) -> None:
    if unknown := kind.needs - NEEDS:
        raise InputError(
            f"analysis {kind.name!r} needs {sorted(unknown)}; there are {sorted(NEEDS)}"
        )


def options_of(kind: type[Analysis]) -> dict[str, Any]:
    """The keyword options of an analysis with their defaults."""
    parameters = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def choose(names: Sequence[str] | None) -> list[str]:
    """The requested names, checked; all known ones for None."""
    known = [one.name for one in measured_questions()]
    for name in names or ():
        if name not in known:
            raise unknown("analysis", name, known)
    return list(dict.fromkeys(names)) if names else list(known)
