"""Fixtures shared with other folders: the models' stand-in and its settings from the voice tests, and gateways from the gateway tests."""

from tests.gateway.conftest import serve
from tests.voice.conftest import config, model_server, silero

__all__ = ["config", "model_server", "serve", "silero"]
