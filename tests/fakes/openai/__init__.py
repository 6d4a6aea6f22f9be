"""Stand-ins for OpenAI, realtime and over HTTP."""
