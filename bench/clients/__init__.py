"""Loads, callers, intruders and baselines: the processes on the other side of what is measured."""
