"""The zoo: claims made of one model, tested on a list of others."""
