"""Prompts: the instructions and the part of the conversation that are sent to a language model. Pure."""
