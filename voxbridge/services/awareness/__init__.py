"""The awareness service: what the user has been doing, as far as the user allows it."""
