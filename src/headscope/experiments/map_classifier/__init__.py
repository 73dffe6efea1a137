"""The classifier of maps: maps are drawn and labelled by eye, and a network learns from them."""
