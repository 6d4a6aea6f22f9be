"""Engines in processes of their own: started, kept alive, adopted by the next service."""
