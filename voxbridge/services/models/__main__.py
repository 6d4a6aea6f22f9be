"""`python -m voxbridge.services.models`: serves the local models, on loopback by default, until it is told to stop."""

from __future__ import annotations

import logging
import os
import socket
import sys

from voxbridge.services.models.processes.home import Home
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.ids import new_process_id
from voxbridge.shared.service import log_format


def main() -> None:
    """Read the settings and serve; a wrong setting or a taken port ends with one line and status 1."""
    try:
        config = Config.from_env()
        log_format.configure(new_process_id("models"), config.log_level)
        home = Home(config.data_dir, config.models_port)
        home.take()
    except VoxbridgeError as error:
        sys.exit(error.message)
    # As in `llama`, for the threads of Whisper.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    # Only now: these imports take a second, and the engines of a service that died wait for the next one to be there.
    import uvicorn

    from voxbridge.services.models.service import create

    app = create(config, home)
    logging.getLogger("faster_whisper").setLevel(logging.WARNING)
    settings = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        limit_concurrency=512,
    )
    try:
        listening = socket.create_server((config.models_host, config.models_port), backlog=512)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        sys.exit(f"Cannot listen on port {config.models_port} ({why}). Stop what uses it, or set VOXBRIDGE_MODELS_PORT to a free one.")
    with listening:
        uvicorn.Server(settings).run(sockets=[listening])


if __name__ == "__main__":
    main()
