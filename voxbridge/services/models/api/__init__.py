"""The OpenAI-compatible API: requests, answers, errors, the guard, and the queues."""
