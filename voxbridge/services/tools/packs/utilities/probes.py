"""The report on an answer of the web: status, time, headers and title."""

from __future__ import annotations

import html
import re
from http.client import responses
from typing import Any, Final

from voxbridge.services.tools.packs.utilities.bounds import storable
from voxbridge.shared.fetch import Fetched

SHOWN_LIMIT: Final = 200
"""Characters of a header or a title that are given."""
_SHOWN: Final = ("content-type", "server", "content-length", "last-modified", "cache-control", "location", "strict-transport-security")
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})", re.IGNORECASE)
_LOOKED_AT: Final = 65_536


def told(fetched: Fetched) -> dict[str, Any]:
    """Return the status, the headers that matter, the redirects, the time it took and the page's title."""
    reason = responses.get(fetched.status, "")
    found = _TITLE.search(fetched.body[:_LOOKED_AT].decode("utf-8", "replace"))
    title = " ".join(html.unescape(found[1]).split())[:SHOWN_LIMIT] if found else ""
    seconds = f"{fetched.elapsed_ms / 1_000:.1f} seconds" if fetched.elapsed_ms >= 1_000 else f"{fetched.elapsed_ms} milliseconds"
    moved = f", after {len(fetched.redirects)} redirect{'s' if len(fetched.redirects) > 1 else ''}" if fetched.redirects else ""
    return {
        "url": fetched.url,
        "status": fetched.status,
        "reason": reason,
        "ok": fetched.status < 400,
        "elapsed_ms": fetched.elapsed_ms,
        "bytes": len(fetched.body),
        "more": fetched.cut,
        "title": storable(title),
        "headers": {name: fetched.headers[name][:SHOWN_LIMIT] for name in _SHOWN if name in fetched.headers},
        "redirects": list(fetched.redirects),
        "spoken": f"It answers with {fetched.status}{f', {reason},' if reason else ''} in {seconds}{moved}.",
    }
