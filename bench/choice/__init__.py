"""Choosing among many functions: what is asked, and how the answers are judged."""
