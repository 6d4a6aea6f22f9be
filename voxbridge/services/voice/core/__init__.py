"""The decisions of a voice session: a pure step function and its parts. No module in this package uses a clock, randomness or I/O."""
