"""A killed gateway, seen from a real Chromium: from the kill until the page is back in its call.

    python -m bench.areas.gateway_back 20

Starts the whole product with `voxbridge up` and a stand-in for the models, opens Studio, and kills the gateway that many times, each at a
random moment 2 to 5 s after it was ready again, when the next gateway stands by. The clock starts at the kill; it covers the supervisor's
wait, the start of the next gateway and the pauses between the page's attempts. Prints one JSON line.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.report import Figure
from bench.stack import ROOT

TIMES: Final = 20
TIMEOUT_S: Final = 600.0
TARGET_MS: Final = 2_000
_NEEDS: Final = "a gateway standing by"
_WHAT: Final = "gateway killed → the browser is back in its call"


class Returns(msgspec.Struct, frozen=True):
    """Output of this module when run as a program."""

    seed: int
    ms: list[float]


async def gateway_back(quick: bool, say: Say) -> Found:
    """Kill the gateway twenty times; a run that fails is a missed target."""
    times = 3 if quick else TIMES
    say(f"gateway_back: the gateway is killed {times} times below a browser")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.areas.gateway_back", str(times)),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            said, words = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = (words if process.returncode else said).decode(errors="replace").strip().splitlines() or [""]
    try:
        found = msgspec.json.decode(lines[-1].encode(), type=Returns)
    except msgspec.DecodeError as error:
        raise ValueError(lines[-1][:200]) from error
    values = figures.series(found.ms)
    note = f"{values.count} kills, p50 {values.p50:.0f}, longest {values.longest:.0f} ms; seed {found.seed}"
    row = Figure(
        area="gateway_back",
        what=f"{_WHAT}, p95",
        key="gateway_back",
        unit="ms",
        value=values.p95,
        target=TARGET_MS,
        note=note,
        needs=_NEEDS,
    )
    return [row], {"returns": found, "ms": values}, []


def returns(times: int) -> Returns:
    """Return the milliseconds from each kill to the call; raises `RuntimeError` without a Chromium."""
    # Imported here, because machines that only read figures may lack the browser tools.
    from types import SimpleNamespace
    from typing import Any, cast

    from playwright.sync_api import sync_playwright

    from deploy.browser import find
    from tests.browser.conftest import FLAGS
    from tests.browser.stage.product import running
    from tests.browser.stage.studio import MICROPHONE, Studio

    path = find()
    if path is None:
        raise RuntimeError("There is no Chromium: run `python3 deploy/browser.py`.")
    seed = random.SystemRandom().randrange(1 << 32)
    chance, found = random.Random(seed), list[float]()
    with (
        _models() as url,
        tempfile.TemporaryDirectory(prefix="voxbridge-bench-") as folder,
        running(Path(folder), cast("Any", SimpleNamespace(base_url=url)), environment={"VOXBRIDGE_SYNC_INTERVAL": "always"}) as product,
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(executable_path=path, headless=True, args=[*FLAGS, "--use-fake-ui-for-media-stream"])
        try:
            page = browser.new_context(viewport={"width": 1280, "height": 820}).new_page()
            page.add_init_script(path=MICROPHONE)
            studio = Studio(page, product.url)
            studio.open()
            studio.start()
            for _ in range(times):
                page.wait_for_timeout(chance.uniform(2_000, 5_000))
                product.kill("gateway")
                began = time.monotonic()
                studio.until("(s) => s.connection !== 'connected'")
                studio.until("(s) => s.connection === 'connected'")
                found.append((time.monotonic() - began) * 1_000)
                product.until_ready()
        finally:
            browser.close()
    return Returns(seed, found)


@contextmanager
def _models() -> Iterator[str]:
    """Run the stand-in for the models on its own event loop; yield its URL."""
    from tests.voice.model_server import ModelServer

    loop, server = asyncio.new_event_loop(), ModelServer()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    try:
        yield server.url
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(returns(int(sys.argv[1]))).decode() + "\n")
