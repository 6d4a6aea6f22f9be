"""A session in this process: the shell around the core, its recovery from the log, its limits, and the guards on what it sends."""
