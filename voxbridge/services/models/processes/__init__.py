"""Engines in their own processes: started, kept alive, adopted by the next service."""
