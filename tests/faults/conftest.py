"""The models' stand-in and its settings, as the tests of the voice service have them, and gateways as the tests of the gateway do."""

from tests.gateway.conftest import serve
from tests.voice.conftest import config, model_server, silero

__all__ = ["config", "model_server", "serve", "silero"]
