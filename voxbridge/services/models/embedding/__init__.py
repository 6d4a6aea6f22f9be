"""Vectors of texts: a table of word pieces, and what is made of it. No model runs."""
