"""The REST interface and the files that a browser loads."""
