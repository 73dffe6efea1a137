"""Replay: do the rules of heads do what the heads do, when they are put in their place?

corpus ─► choosing (rules of every head, on one half) ─► replacements ─┐
          head_sets (ordered, at random) ──────────────────────────────┼─► scores ─► result ─► a run
          rule_file (the user's rules) ────────────────────────────────┘
"""

from headscope.claims.question import Question

REPLAY = Question(
    package=__name__,
    name="replay",
    title="Replaced by rules",
    place=306,
)
