"""Voxbridge: event-sourced voice agents on a message bus."""
