"""Functions that make, list, run and delete macros."""
