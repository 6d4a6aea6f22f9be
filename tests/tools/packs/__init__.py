"""Tests of the built-in packs."""
