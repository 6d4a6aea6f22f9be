"""Check of `SSL_CERT_FILE`, which OpenSSL and every SDK here honour: done once at the start, because their own errors do not name it."""

from __future__ import annotations

import os
import ssl
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError

VARIABLE: Final = "SSL_CERT_FILE"


def check_certificates() -> None:
    """Raise `INVALID_ARGUMENT` when the file that it names cannot be used. An empty value is removed: with it no certificate would be
    trusted."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    if not path.strip():
        del os.environ[VARIABLE]
        return
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        reason = "holds no certificate in PEM form"
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or str(error)).lower()}"
    else:
        return
    message = f"{VARIABLE} names {path}, which {reason}. Name a file of certificates that this user may read, or leave it unset."
    raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=VARIABLE)
