"""The decisions of a voice session: a pure step and all that it is made of. No clock, no randomness, no I/O anywhere below."""
