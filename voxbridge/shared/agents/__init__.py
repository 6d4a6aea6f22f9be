"""Agents, pipelines, voices and functions: their model, their files, and the providers that serve them."""
