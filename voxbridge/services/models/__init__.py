"""The models service: local speech recognition, language model and speech."""
