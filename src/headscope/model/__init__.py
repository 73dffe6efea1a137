"""Load models, and read what their attention layers compute."""
