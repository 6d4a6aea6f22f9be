"""Tests of the awareness service."""
