"""A stand-in for ElevenLabs."""
