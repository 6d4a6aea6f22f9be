"""`python -m services.models`: serves the local models on loopback until it is told to stop."""

from __future__ import annotations

import logging
import sys

import uvicorn

from services.models.service import create
from shared import loglines
from shared.config import Config
from shared.errors import VoxbridgeError
from shared.ids import new_process_id


def main() -> None:
    """Read the settings and serve; a wrong setting or a taken port ends with one line and status 1."""
    try:
        config = Config.from_env()
        loglines.configure(new_process_id("models"), config.log_level)
        app = create(config)
    except VoxbridgeError as error:
        sys.exit(error.message)
    logging.getLogger("faster_whisper").setLevel(logging.WARNING)
    settings = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=config.models_port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        limit_concurrency=512,
    )
    server = uvicorn.Server(settings)
    server.run()
    if not server.started:
        sys.exit(f"Port {config.models_port} is taken. Stop what uses it, or set VOXBRIDGE_MODELS_PORT to a free one.")


if __name__ == "__main__":
    main()
