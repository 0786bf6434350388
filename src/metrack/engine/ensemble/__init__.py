"""Many learners of the same pairs: they learn, bank by bank; then one pass combines them."""
