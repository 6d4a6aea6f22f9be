"""Utilities: formats, encodings, texts, times, units, code and files."""
