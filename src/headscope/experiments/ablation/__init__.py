"""Ablation: switch heads off, alone or together, and score the task without them.

variants ─► variant_answers (see `shared_prefix`, or the naive way) ─► effects ─► a run
`prune` removes heads one after another; `pruned_checkpoint` writes a model without them.
"""

from headscope.claims.question import Question

ABLATION = Question(
    package=__name__,
    name="ablation",
    title="Without the head",
    place=300,
    figures="figure:FIGURES",
    section="section:ABLATION_SECTIONS",
    opening="section:OPENING",
    terms="terms:TERMS",
    labels="terms:ABLATION_LABELS",
    tables="result:tables",
    findings="findings:ablation_findings",
    remarks="terms:remarks",
    shown={"first": ("difference", "loss_difference", "q", "loss_q", "lost", "gained")},
)

PRUNING = Question(
    package=__name__,
    name="pruning",
    title="Order of removal",
    place=310,
    figures="figure:PRUNING_FIGURES",
    section="section:PRUNING_SECTIONS",
    opening="section:OPENING",
    labels="terms:PRUNING_LABELS",
    findings="findings:pruning_findings",
    shown={"first": ("*",)},
)
