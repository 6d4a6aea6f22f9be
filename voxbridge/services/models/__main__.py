"""`python -m voxbridge.services.models`: serve the local models, on loopback by default, until the process is stopped."""

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
    """Read the settings and serve. A wrong setting or a taken port ends with one line and status 1."""
    try:
        config = Config.from_env()
        log_format.configure(new_process_id("models"), config.log_level)
        home = Home(config.data_dir, config.models_port)
        home.take()
    except VoxbridgeError as error:
        sys.exit(error.message)
    # As in `llama`, but for the threads of Whisper.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    # A router is trained and asked in one thread: OpenBLAS's others spin beside the engines and gain nothing at its sizes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Texts are embedded in one thread, at a low priority; the library's own threads would have a call's.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Imported after `home.take()`: these imports take a second, and engines of a dead service wait only seconds for a successor.
    import uvicorn

    from voxbridge.services.models.service import create
    from voxbridge.shared.service.http_server import HttpServer

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
        HttpServer(settings).run(sockets=[listening])


if __name__ == "__main__":
    main()
