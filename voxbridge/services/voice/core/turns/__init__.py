"""Turns, whatever model takes part in them: replies, what was heard of them, interruptions, usage. Pure."""
