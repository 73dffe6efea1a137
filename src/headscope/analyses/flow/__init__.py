"""The question flow: from which input tokens does a representation come, over all layers?"""

from headscope.analyses.flow.methods import check_named
from headscope.core.question import Option, Question

QUESTION = Question(
    name="flow", package=__name__, slow=True, place=50, measure="measure:Flow",
    summary="which input tokens a representation comes from, over all layers",
    source="Abnar & Zuidema 2020; Modarressi et al. 2022",
    needs=frozenset({"attention", "whole_rows", "every_layer"}),
    options={"methods": Option("rollout,weighted_norm_residual,globenc", check_value=check_named)},
    figures="figure:FIGURES", section="figure:SECTIONS", terms="methods:TERMS",
    labels="methods:RESULT_LABELS",
)  # fmt: skip
