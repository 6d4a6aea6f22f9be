"""OpenAI Realtime, through the openai SDK."""
