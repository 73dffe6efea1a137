"""One folder per question about heads; each announces itself (`QUESTION`)."""
