"""Terminals at the gateway: tickets for their sockets, and the sockets."""
