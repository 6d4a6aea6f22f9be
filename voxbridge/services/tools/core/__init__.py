"""The calls and tasks of one session as a pure step. No clock, no randomness, no I/O anywhere below."""
