"""Decisions of the awareness service. Pure: no clock, no randomness, no I/O."""
