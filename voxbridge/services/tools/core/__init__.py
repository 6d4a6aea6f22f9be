"""The calls and tasks of one session as a pure step. Everything below is free of clocks, randomness and I/O."""
