"""One VOX socket at work: transport, shell, microphone, and resuming from the log."""
