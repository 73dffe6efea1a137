"""The question flow: from which input tokens does a representation come, over all layers?"""

from headscope.core.question import Question

QUESTION = Question(
    name="flow", package=__name__, slow=True, place=50, measure="measure:Flow",
    figures="figure:FIGURES", section="figure:SECTIONS", terms="methods:TERMS",
    labels="methods:RESULT_LABELS",
)  # fmt: skip
