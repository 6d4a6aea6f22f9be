"""`voxbridge mcp`: sessions, replays and functions for a coding assistant, over the Model Context Protocol on standard input and output."""
