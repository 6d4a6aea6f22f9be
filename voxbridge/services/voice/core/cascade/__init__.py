"""The cascade of speech to text, language model and text to speech: how the core drives the three models as one. Pure."""
