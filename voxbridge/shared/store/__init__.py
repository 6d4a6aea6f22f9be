"""Typed keys in Valkey, and the connection to it."""
