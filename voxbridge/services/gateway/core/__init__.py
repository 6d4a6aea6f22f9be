"""The decisions of one browser connection and the messages of its protocol. No clock, no randomness, no I/O anywhere below."""
