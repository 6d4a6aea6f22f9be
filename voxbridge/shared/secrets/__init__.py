"""Secrets: the vault, sealed boxes, provider keys, access tokens, and the files that hold them."""
