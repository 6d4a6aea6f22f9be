"""Setting up a checkout, and the gates of `make check`."""
