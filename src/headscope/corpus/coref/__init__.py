"""Read coreference corpora: CoNLL-2012, LitBank, CorefUD and GAP."""
