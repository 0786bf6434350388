"""Studies built from streams, learners and plots; the command line runs them."""
