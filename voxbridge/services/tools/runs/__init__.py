"""Macros and workflows: documents of steps, and the runs of them. Everything below is free of clocks, randomness and I/O."""
