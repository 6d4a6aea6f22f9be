"""Macros, as far as services share them: their triggers, the answers to their questions, the traces of their runs. Pure."""
