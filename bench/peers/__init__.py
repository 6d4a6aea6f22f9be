"""The peers, measured beside the product: see `python -m bench.peers --help`."""
