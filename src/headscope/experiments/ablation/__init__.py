"""Which heads does a task need? Heads are replaced, one by one or together, and the score is seen.

variants ─► sweep (shared: from the changed layer up, or naive) ─► outputs ─► effects ─► a run
`prune` removes them one after another, and `disable` for good, in a checkpoint.
"""

from headscope.core.question import Question

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
    tables="tables:tables",
    findings="findings:ablation_findings",
    remarks="task_wording:remarks",
    first=("difference", "loss_difference", "q", "loss_q", "lost", "gained"),
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
    first=("*",),
)
