"""Tests of the platform's door."""
