"""What a report says of the question `features`."""

from __future__ import annotations

from headscope.analyses.features.tables import features_table
from headscope.analyses.language.tables import notes
from headscope.page.sections import LANGUAGE, SectionPlan

SECTIONS = (
    SectionPlan(
        id="features",
        title="Kinds of words: who looks at nouns, subjects, negation?",
        text=(
            "How much attention the most attended word of a kind receives, beside what punctuation "
            "and special tokens draw; from [CLS] in the last layer, which classifiers read; and "
            "between words that belong together."
        ),
        pictures=("features_by_layer", "cls_attention", "pairs"),
        tables=(features_table,),
        notes=notes(("features", "cls_attention", "pairs"), "word"),
        chapter=LANGUAGE,
        groups=("features", "cls_attention", "pairs"),
        wanted="kinds of words (tags: --treebank, or --annotate with --text)",
        tables_first=True,
        chooses=False,
    ),
)
