"""Prompts, answers and grammars of the language model. Everything below is free of clocks, randomness and I/O."""
