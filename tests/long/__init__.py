"""Tests with new random input on every run, in large numbers: `make test-long` runs them, `make test` does not."""
