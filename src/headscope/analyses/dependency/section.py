"""What a report says of the question `dependency`."""

from __future__ import annotations

from headscope.analyses.dependency.tables import syntax_table
from headscope.analyses.language.tables import notes
from headscope.page.sections import LANGUAGE, SectionPlan

SECTIONS = (
    SectionPlan(
        id="syntax",
        title="Syntax: who finds a word’s syntactic head?",
        text=(
            "Of all other words of the sentence, the one that a word attends to most is taken for "
            "its syntactic head (direct object → verb), or the one that attends most to it (verb → "
            "its direct object). The baseline needs no model: the best fixed offset, say, the next "
            "word."
        ),
        pictures=("best_heads", "dependency_heads", "example_sentences"),
        tables=(syntax_table,),
        notes=notes(("dependency",), "word"),
        chapter=LANGUAGE,
        groups=("dependency",),
        wanted="syntax (trees: --treebank, or --annotate with --text)",
        tables_first=True,
        chooses=True,
    ),
)
