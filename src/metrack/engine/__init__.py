"""The compiled heart: learns a bank of metrics; knows no files, plots or users."""
