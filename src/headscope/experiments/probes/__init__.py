"""Small trained probes that read syntax off attention maps and hidden states.

Nothing is imported here: `headscope.experiments.probes.probe` is the way in.
"""

from headscope.core.question import Question

PROBES = Question(
    package=__name__,
    name="probes",
    place=340,
    figures="figure:FIGURES",
    section="section:SECTIONS",
    opening="section:OPENING",
    terms="terms:TERMS",
    labels="terms:PROBES_LABELS",
    tables="findings:tables",
    findings="findings:probe_findings",
    shown={"first": ("head_influence*",)},
)
