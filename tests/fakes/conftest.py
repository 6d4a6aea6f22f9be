"""Stand-ins to which the environment points in place of the vendors' services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.gemini.server import GeminiServer


@pytest.fixture
async def gemini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GeminiServer]:
    """A fake Gemini that the SDK finds and trusts. A test that opens no session itself may still need it to run."""
    async with GeminiServer(tmp_path) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.ca_file))
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        yield server
