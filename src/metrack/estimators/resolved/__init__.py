"""What settings come to: records without "auto", and the tables of learners."""
