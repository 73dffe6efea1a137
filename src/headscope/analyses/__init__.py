"""One folder per question that is asked of every head; each announces itself (`QUESTION`)."""
