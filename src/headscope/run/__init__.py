"""One pass over a corpus: settings, plan, store, engines, and the life cycle of a run folder."""
