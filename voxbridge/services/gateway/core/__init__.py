"""The decisions of one client connection and the messages of its protocol. Everything below is free of clocks, randomness and I/O."""
