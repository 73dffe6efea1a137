"""Prompts of the user's own: given as they are, or read from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.errors import InputError, did_you_mean
from headscope.experiments.circuits.made_prompts import MADE
from headscope.experiments.circuits.prompts import Prompt, PromptSet, encode_prompts
from headscope.tasks.table_files import text_rows

COLUMNS = ("prompt", "answer", "wrong", "corrupted", "item", "form")
OTHER = "corrupted: "  # before the name of a further kind of corrupted prompts
PromptLike = Prompt | Sequence[Any] | Mapping[str, Any]


def as_prompt(source: PromptLike) -> Prompt:
    """A prompt from one, from its fields by name, or from (text, answer, wrong, corrupted).

    raises  InputError for anything else
    """
    if isinstance(source, Prompt):
        return source
    try:
        if isinstance(source, Mapping):
            return Prompt(**source)
        if not isinstance(source, str):
            return Prompt(*source)
    except TypeError:
        pass  # a field too few, or one that is none
    raise InputError(
        f"found {source!r} as a prompt; wanted (text, answer, wrong), or these and a corrupted "
        "text: ('When Mary and John left, John gave it to', ' Mary', ' John')"
    )


def read_prompts(path: str | Path, tokenizer: Any) -> PromptSet:
    """The prompts in a table with the columns COLUMNS, of which the last three may be absent.

    An answer stands after its prompt and one space. A column `corrupted: NAME` holds a further kind
    of corrupted prompts.

    raises  CorpusError for a file that is no such table; InputError as `encode_prompts`
    """
    return encode_prompts(tokenizer, prompts_in(path), kind=Path(path).name)


def check_prompts(name: str) -> None:
    """Raise InputError for the name of no made set, CorpusError for a file without prompts."""
    if not name or name in MADE:
        return
    if not Path(name).suffix:
        raise unknown_prompts(name)
    prompts_in(name)


def unknown_prompts(name: str) -> InputError:
    """The error for the name of no made set."""
    meant = did_you_mean(name, MADE) or ";"
    return InputError(
        f"no prompts {name!r}{meant} there are {', '.join(MADE)}, or a table of prompts"
    )


def prompts_in(path: str | Path) -> list[Prompt]:
    """The prompts in a table, as `read_prompts`; no model is needed."""
    wanted = "a prompt, its answer and a wrong one"
    return [
        Prompt(
            row["prompt"],
            f" {row['answer']}",
            f" {row['wrong']}",
            row["corrupted"],
            row["item"],
            row["form"],
            tuple((n.removeprefix(OTHER), row[n]) for n in row if n.startswith(OTHER) and row[n]),
        )
        for row in text_rows(Path(path), COLUMNS[:3], COLUMNS[3:], wanted=wanted)
    ]
