"""One session in this process: the shell around the core, its recovery from the log, and what holds it back."""
