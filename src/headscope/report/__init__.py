"""The page of a run, from its results."""
