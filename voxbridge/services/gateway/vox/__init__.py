"""The running part of a VOX socket: transport, shell, microphone, and resuming from the log."""
