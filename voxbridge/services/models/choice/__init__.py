"""Choosing among many functions: whether a request wants one, and which few it may be. Pure."""
