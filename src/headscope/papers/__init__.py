"""What papers published and claimed, held against our runs."""
