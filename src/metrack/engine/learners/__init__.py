"""Learners of one kind a file: what they keep, their step, and the metric that is read."""
