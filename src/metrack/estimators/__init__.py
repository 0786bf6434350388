"""What users import: one estimator a file; what serves them in the rooms beside."""
