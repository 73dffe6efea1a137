"""What a report says of the question `coreference`."""

from __future__ import annotations

from headscope.analyses.coreference.tables import coreference_table
from headscope.analyses.language.tables import notes
from headscope.page.sections import LANGUAGE, SectionPlan

SECTIONS = (
    SectionPlan(
        id="coreference",
        title="Coreference: who finds the antecedent?",
        text=(
            "Of the mentions before it, the one whose head word a mention’s head word attends to "
            "most is taken for its antecedent, and is right if it is of the same entity, however "
            "far back."
        ),
        pictures=("coreference",),
        tables=(coreference_table,),
        notes=notes(("coreference",), "mention"),
        chapter=LANGUAGE,
        groups=("coreference",),
        wanted="coreference (mentions: --coref)",
        tables_first=True,
        chooses=True,
    ),
)
