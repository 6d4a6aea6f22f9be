"""Functions that start and list guided tours."""
