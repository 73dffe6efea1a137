"""What does each head of a decoder do on inputs made for the question, and from which heads?

made_inputs ─► pattern_scores (attention on repeated tokens) ─┐
weight_maps (W_Q, W_K, W_V, W_O, folded) ─► weight_scores ────┴─► result ─► a run
"""

from headscope.core.question import Question

CIRCUITS = Question(
    package=__name__, name="circuits", title="On made inputs", place=302,
    figures="figure:FIGURES", section="section:SECTIONS", opening="section:OPENING",
    terms="terms:TERMS", labels="terms:LABELS", claims="claims:claims", rules="claims:RULES",
    findings="section:circuit_findings", tables="section:tables", shown={"table": (
        "score.induction", "score.previous_token", "score.duplicate_token", "copied",
        "weight_copying", "successor", "retrieval",
    )},
)  # fmt: skip
