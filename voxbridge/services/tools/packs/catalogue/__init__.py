"""Functions about functions: what there is, how to run it, and what is under way."""
