"""The tools service: executes functions and long tasks, each effect once."""
