"""Word alignment by cross-attention: which word translates which (Kobayashi et al. 2020, §5)."""

from headscope.core.question import Question

ALIGNMENT = Question(
    package=__name__,
    name="alignment",
    place=350,
    figures="figure:FIGURES",
    section="section:SECTIONS",
    opening="section:OPENING",
    terms="terms:TERMS",
    findings="section:findings",
)
