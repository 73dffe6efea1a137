"""How much does a loss depend on each head? Gradients of attention, and what is made of them.

examples ─► stream (∂loss/∂α of every layer, inside backward) ─► gradients ─► result ─► a run
`attribution` integrates gradients from no attention to all of it; `correlation` holds all of that
against what switching a head off does.
"""

from headscope.core.question import Question

GRADIENTS = Question(
    package=__name__,
    name="gradients",
    place=305,
    figures="figure:GRADIENT_FIGURES",
    section="section:GRADIENT_SECTIONS",
    opening="section:OPENING",
    terms="terms:TERMS",
    labels="terms:GRADIENTS_LABELS",
    shown={"first": ("*",)},
)

IMPORTANCE = Question(
    package=__name__,
    name="importance",
    place=306,
    figures="figure:FIGURES",
    section="section:SECTIONS",
    opening="section:OPENING",
    labels="terms:IMPORTANCE_LABELS",
    findings="findings:importance_findings",
    shown={"first": ("*",)},
)
