"""Requests of commands to the running gateway, as an administrator.

Owns how the gateway and the token are found. Nothing is kept, and nothing is lost in a crash here.
"""

from __future__ import annotations

from typing import Any, Final

import httpx

from voxbridge.doctor.machine import is_running
from voxbridge.installation import runtime
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.secrets.secret_file import admin_token_file

TIMEOUT_S: Final = 10.0


def ask_gateway(method: str, path: str, **options: Any) -> httpx.Response:
    """Send a request to the gateway of this machine, as an administrator; return its answer. Raises the error that it answers with, and
    `UNAVAILABLE` where no gateway answers."""
    config = Config.from_env()
    url, token = _url(config), admin_token_file(config).read()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False, headers=headers) as client:
            answer = client.request(method, path, **options)
    except httpx.HTTPError as error:
        raise Unavailable(
            f"No gateway answers at {url} ({type(error).__name__}). Start it with `voxbridge up`, or set VOXBRIDGE_PORT to its port."
        ) from error
    if answer.is_success:
        return answer
    try:
        told = answer.json()
        raise VoxbridgeError(Code(told["code"]), told["message"])
    except (ValueError, KeyError, TypeError):
        raise Unavailable(f"What answers at {url} is not a Voxbridge of this release: it says {answer.status_code}.") from None


def _url(config: Config) -> str:
    """Return the URL of the gateway that `voxbridge up` runs on the data folder; without one, as in the gateway's own container, the URL in
    the settings."""
    found = runtime.told(config.data_dir) if is_running(config.data_dir) else None
    return found.url if found is not None else config.gateway_base_url
