"""The map classifier: draw maps, label them by eye, and train a network on them."""
