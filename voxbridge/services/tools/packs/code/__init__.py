"""Security and complexity of source files."""
