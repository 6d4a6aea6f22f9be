"""The time, sums, timers and notes."""
