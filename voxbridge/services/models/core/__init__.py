"""Prompts, answers and grammars of the language model. No clock, no randomness, no I/O anywhere below."""
