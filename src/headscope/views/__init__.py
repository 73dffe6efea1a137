"""View one example: its attention is captured, packed, and drawn in one offline page."""
