"""The built-in function packs: one module each, loaded by `services.tools.registry`."""
