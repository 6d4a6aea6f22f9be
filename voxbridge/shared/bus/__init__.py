"""NATS: subjects, permissions, the client and its connection, and messages that are never stored."""
