"""The baselines that learn one dense matrix from a stream: ITML, LEGO and OASIS."""
