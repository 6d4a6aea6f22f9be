"""What a language model is told of a conversation, and how much of it fits. Pure."""
