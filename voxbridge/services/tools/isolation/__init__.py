"""Isolation of functions whose resources must be limited: child processes, and the program they run."""
