"""What differs between architectures: where attention lives and what surrounds it."""
