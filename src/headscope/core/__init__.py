"""What the other rooms stand on: sums, estimates, labelled results, terms, files."""
