"""Terminals: listed, read, typed into and waited for by voice, through the terminals service."""
