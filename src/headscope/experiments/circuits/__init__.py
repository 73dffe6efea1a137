"""Circuits: what each head of a decoder does on synthetic inputs, and what it reads.

made_inputs (repeated tokens) ─────────────┐
weight_maps (W_Q, W_K, W_V, W_O, folded) ──┼─► head_scores ─► result ─► a run
prompts ─► direct_logits, patching (head_swaps) ─────────────────┘
"""

from headscope.claims.question import Question

CIRCUITS = Question(
    package=__name__, name="circuits", title="On made inputs", place=302,
    figures="figure:FIGURES", section="section:SECTIONS", opening="section:OPENING",
    terms="claims:TERMS", labels="claims:LABELS", claims="claims:CLAIMS", marks="claims:MARKS",
    findings="section:circuit_findings", tables="section:tables",
    pages="prompt_page:write_prompts", shown={"table": (
        "score.induction", "score.previous_token", "score.duplicate_token", "copied",
        "weight_copying", "successor", "retrieval",
    )},
)  # fmt: skip

WRITES = Question(
    package=__name__,
    name="writes",
    title="What heads write",
    place=303,
    figures="written_answers:FIGURES",
    section="written_answers:SECTIONS",
    opening="section:OPENING",
    terms="written_answers:TERMS",
    labels="written_answers:LABELS",
    claims="written_answers:claims",
    rules="written_answers:RULES",
    findings="written_answers:findings",
    shown={"table": ("effect", "direct_share"), "card": ("effect", "direct_share")},
)
