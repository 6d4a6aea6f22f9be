"""Turns, independent of the kind of model: replies, what was heard of them, interruptions, usage. Pure."""
