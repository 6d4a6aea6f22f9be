"""Tests of the shapes of terminals."""
