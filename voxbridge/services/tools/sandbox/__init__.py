"""The sandbox: hostile handlers of pages run here, each session's in a process of its own, and may do nothing but compute and ask."""
