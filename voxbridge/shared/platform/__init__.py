"""The platform: pages that bring their own handlers, the keys that let them in, and the secrets that their handlers use."""
