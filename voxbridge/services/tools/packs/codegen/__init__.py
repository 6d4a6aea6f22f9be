"""Generators of components, endpoints and tests."""
