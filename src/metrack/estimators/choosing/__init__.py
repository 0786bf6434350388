"""Which pairs to learn from or to ask about: drawn from labels, suggested, implied."""
