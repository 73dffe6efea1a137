"""Related words of the user's own, read from a table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from headscope.core.display import printable
from headscope.errors import InputError
from headscope.experiments.circuits.relation_claims import EMBEDDED
from headscope.tasks.table_files import text_rows

COLUMNS = ("relation", "word", "related")
Words = Mapping[str, Sequence[tuple[str, str]]]  # by relation, a word and the related one


def read_relations(path: str | Path) -> Words:
    """The pairs of a table with the columns COLUMNS; none for "".

    raises  CorpusError for a file that is no such table; InputError for one without pairs
    """
    pairs: dict[str, list[tuple[str, str]]] = {}
    if not path:
        return pairs
    for row in text_rows(Path(path), COLUMNS, wanted="a relation and its two words"):
        pairs.setdefault(printable(row["relation"]), []).append((row["word"], row["related"]))
    if twice := [name for name in pairs if name + EMBEDDED in pairs]:
        raise InputError(f"{path} has a relation {twice[0] + EMBEDDED!r}; wanted another name")
    if not pairs:
        raise InputError(f"found no row in {path}; wanted a relation and its two words in each")
    return pairs
