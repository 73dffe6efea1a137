"""Do claims made of one model hold for others? A small battery over a list of models."""
