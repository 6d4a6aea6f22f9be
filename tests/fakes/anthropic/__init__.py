"""A stand-in for Anthropic's messages."""
