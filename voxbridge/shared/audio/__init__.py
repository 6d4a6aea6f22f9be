"""Audio frames, their place on a session's timeline, and sealed recordings."""
