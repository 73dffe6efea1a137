"""The attention of one example, to look at: captured, packed, and drawn in one offline page."""
