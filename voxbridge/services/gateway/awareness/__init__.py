"""Reports of clients about the screen, and the switches of its sources."""
