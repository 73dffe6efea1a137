"""Build the page of a run from its results."""
