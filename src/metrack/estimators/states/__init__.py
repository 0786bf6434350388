"""Learners on disk: their settings, engines and arrays, and back."""
