"""Playbooks: a folder of Markdown, searched by words."""
