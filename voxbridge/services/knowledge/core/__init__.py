"""The rules: passages, entities, the order of what was found. Pure."""
