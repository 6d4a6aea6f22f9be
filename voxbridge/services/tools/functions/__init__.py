"""The built-in function packs: one module each, loaded by `voxbridge.services.tools.registry`."""
