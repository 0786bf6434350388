"""How a learner's metric is kept: one protocol, a file for each way."""
