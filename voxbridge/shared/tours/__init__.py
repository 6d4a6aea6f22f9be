"""Guided tours: what they are, and what a person says to start and steer one."""
