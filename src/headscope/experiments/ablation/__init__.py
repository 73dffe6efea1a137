"""Which heads does a task need? Heads are replaced, one by one or together, and the score is seen.

variants ─► sweep (shared: from the changed layer up, or naive) ─► outputs ─► effects ─► a run
`prune` removes them one after another, and `disable` for good, in a checkpoint.
"""
