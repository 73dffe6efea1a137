"""What did Clark et al. (2019) publish, in which order?"""

from __future__ import annotations

from headscope.core.terms import CLARK
from headscope.papers.reproduce import clark_language as language
from headscope.papers.reproduce import clark_surface as surface
from headscope.papers.reproduce.line import Paper, Section, Shown

PAPER = Paper(
    "clark2019",
    "What Does BERT Look At? An Analysis of BERT’s Attention",
    CLARK,
    "google-bert/bert-base-uncased",
    ("bert-base-uncased", "bert-base-cased"),
    (
        Section("neighbours", "Relative position (§3.1)", "Most heads attend little to the token "
                "itself; some look at a neighbour.", surface.neighbours()),
        Section("separators", "Attending to separator tokens (§3.2)", "In the middle layers "
                "attention rests on [SEP], where it does little to the output.",
                surface.separators(), (Shown("surface", "surface_by_layer", "Figure 2"),
                Shown("gradients", "gradients", "Figure 3"))),
        Section("entropy", "Focused and broad attention (§3.3)", "Some heads of the lower layers "
                "attend very broadly, and so does [CLS] in the last.", surface.entropies(),
                (Shown("surface", "entropy_by_layer", "Figure 4"),)),
        Section("treebank", "The treebank", "Trees of the Penn Treebank’s development part, in "
                "Stanford Dependencies. With Universal Dependencies, relations of the same meaning "
                "stand in for them.", language.treebank()),
        Section("dependency", "Dependency syntax (§4.2)", "Single heads find single relations, far "
                "better than fixed offsets do. Head and offset are both picked on the words that "
                "they are scored on, as in the paper.", language.table_1(),
                (Shown("dependency", "best_heads", "Table 1"),)),
        Section("coreference", "Coreference (§4.3)", "One head finds antecedents nearly as often "
                "as a rule-based system. Inputs are cut to 128 tokens.", language.table_2(),
                (Shown("coreference", "coreference", "Table 2"),)),
        Section("probes", "Heads in combination (§5)", "Probes that weigh all heads find most of "
                "the tree.", language.table_3(), (Shown("probes", "probes", "Table 3"),)),
        Section("clusters", "Clustering heads (§6)", "Heads form groups that attend alike, often "
                "within a layer.", surface.clustering(), (Shown("surface", "divergence_map"),
                Shown("surface", "layers_alike"))),
    ),
    doubt="the paper hints at the cased model for its main figures, its released code at the "
    "uncased one; either is taken for its own",
)  # fmt: skip
