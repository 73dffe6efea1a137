"""Comparison of two models of one shape: what fine-tuning changes in their heads."""

from headscope.core.question import Question

SIMILARITY = Question(
    package=__name__,
    name="similarity",
    place=320,
    figures="figure:FIGURES",
    section="section:SECTIONS",
    opening="section:OPENING",
    terms="terms:TERMS",
    labels="terms:SIMILARITY_LABELS",
    tables="tables:comparison_tables",
    findings="findings:findings",
)

CHANGE = Question(
    package=__name__,
    name="change",
    place=330,
    figures="figure_change:FIGURES",
)
