"""A stand-in for AssemblyAI."""
