"""Tests that draw anew on every run and in bulk: `make test-long` runs them, `make test` does not."""
