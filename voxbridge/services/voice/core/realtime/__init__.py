"""Realtime models, which hear and speak themselves: how the core holds a conversation with one. Pure."""
