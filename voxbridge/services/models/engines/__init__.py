"""The models in memory: language, speech to text, text to speech, end of turn."""
