"""Replay: do the rules of heads do what the heads do, when they are put in their place?

corpus ─► choosing (rules of every head, on one half) ─► replacements ─┐
          head_sets (ordered, at random) ──────────────────────────────┼─► scores ─► result ─► a run
          rule_file (the user's rules) ────────────────────────────────┘
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question

REPLAY = Question(
    package=__name__,
    name="replay",
    title="Replaced by rules",
    place=306,
    figures=(
        PicturePlan(
            name="replay",
            title="Heads replaced by rules",
            panels="figure:panels",
            caption="figure:caption",
            heading="Can rules stand in for heads?",
            text="The attention of heads is replaced by what readable rules predict from the input "
            "alone; values stay. If the output hardly changes, the rules say what the heads do; "
            "beside them stand replacements that know less.",
            tables=("section:table",),
        ),
    ),
    opening="section:OPENING",
    terms="terms:TERMS",
    labels="terms:LABELS",
    findings=("section:findings",),
    tables="section:tables",
)
