"""The peers as servers of the load client's protocol: one module each, run by the Python of that peer's own environment.

Each relays through its framework's own Gemini Live service, set up as in the framework's documentation. There is no persistent state: a
crash ends the calls of one measurement.
"""
