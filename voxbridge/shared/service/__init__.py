"""The life of a service process: start, health, log lines, drain."""
