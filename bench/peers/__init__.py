"""Comparison of the product with its peers: see `python -m bench.peers --help`."""
