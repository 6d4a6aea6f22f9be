"""A stand-in for Gemini, live and as text."""
