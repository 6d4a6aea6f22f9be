"""The peers as servers of the load client's wire: one module each, run by the Python of that peer's own environment.

Each relays through its framework's own Gemini Live service, put together as the framework's documentation does it. Holds nothing that
outlives it: a crash ends the calls of one measurement.
"""
