"""The interface to language models, and the clients of transcription, completion and speech."""
