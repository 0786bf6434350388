"""What users import: one estimator a file, on a common base."""
