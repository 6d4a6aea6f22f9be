"""Models that hear and speak themselves: how the core holds a conversation with one. Pure."""
