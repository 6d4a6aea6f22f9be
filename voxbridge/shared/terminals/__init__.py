"""Terminals as every part of the system names them: shapes, questions to the service that runs them, and live bytes."""
