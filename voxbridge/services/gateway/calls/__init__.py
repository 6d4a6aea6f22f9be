"""Calls of functions that belong to no session: asked for over REST, kept and answered in the log of an account."""
