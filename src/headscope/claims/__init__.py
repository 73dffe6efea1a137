"""What may be said of heads: questions, claims and labels, verdicts, terms, sources."""
