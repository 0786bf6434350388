"""Textbook versions of the algorithms, dense and slow, to hold the compiled ones against."""
