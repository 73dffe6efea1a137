"""The five classes of attention maps: labelling by eye, a classifier, and what it finds."""
