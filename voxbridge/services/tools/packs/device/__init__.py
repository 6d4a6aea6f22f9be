"""Sensors of the machine."""
