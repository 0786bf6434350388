"""Formulas and small solvers, on numbers and vectors; they know nothing of learners or streams."""
