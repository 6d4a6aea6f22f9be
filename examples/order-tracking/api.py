"""A small shop: `python3 api.py` serves orders on 127.0.0.1:9400 to whoever has the key. It needs nothing but Python."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

KEY: Final = "shop-secret"
ORDERS: Final = {
    "1042": {"status": "sent", "arrives": "tomorrow", "items": ["a red lamp"]},
    "2001": {"status": "being packed", "arrives": "on Friday", "items": ["two blue chairs", "a table"]},
}


class Shop(BaseHTTPRequestHandler):
    """Answers `GET /orders/NUMBER`."""

    def do_GET(self) -> None:
        """Answer one request."""
        given = self.headers.get("Authorization", "")
        number = self.path.rpartition("/")[2]
        if given != f"Bearer {KEY}":
            self._answer(401, {"error": "The key is missing or wrong."})
        elif number in ORDERS:
            self._answer(200, {"order": number, **ORDERS[number]})
        else:
            self._answer(404, {"error": f"There is no order {number[:20]}."})

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9400
    print(f"Orders {', '.join(ORDERS)} on http://127.0.0.1:{port}/orders/NUMBER", flush=True)  # noqa: T201 - its only output
    ThreadingHTTPServer(("127.0.0.1", port), Shop).serve_forever()
