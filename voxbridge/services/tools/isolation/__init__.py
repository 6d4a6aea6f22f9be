"""Functions that cannot be bounded: child processes that run them, and the program of such a child."""
