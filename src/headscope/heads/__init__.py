"""What all analyses together say of one head: labels, card, tables."""
