"""Speech to text, language model, text to speech: how the core drives three models as one. Pure."""
