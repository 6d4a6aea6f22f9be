"""Measurements of the product: `make bench` and `make bench-peers`."""
