"""What is read of learners: embeddings, reports, probabilities."""
