"""An installation: its streams, credentials, keys, and the checks before it starts."""
