"""An installation: its streams, credentials, keys, and what must hold before it starts."""
