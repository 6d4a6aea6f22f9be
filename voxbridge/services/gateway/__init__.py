"""The gateway: holds the sockets of browsers, and serves REST and Studio."""
