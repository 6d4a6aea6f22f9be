"""The state of a terminal's program, folded from what sources say. Pure: no clock, no I/O."""
