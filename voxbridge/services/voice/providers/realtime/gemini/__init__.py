"""Gemini Live, through the google-genai SDK."""
