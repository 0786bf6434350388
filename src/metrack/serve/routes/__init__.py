"""The routes under /v1: thin; what they do is in the other files."""
