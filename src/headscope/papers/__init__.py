"""Published numbers and claims, held against runs."""
