"""The OpenAI-compatible API: requests, answers, errors, who may ask, and who waits."""
