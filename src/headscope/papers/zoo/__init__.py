"""The zoo: claims made of one model, held against a list of others."""
