"""Areas of `make bench`, one module each."""
