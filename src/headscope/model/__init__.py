"""Opening models, and reading what their attention layers compute."""
