"""A killed gateway, seen from a real Chromium: from the kill until the page is back in its call.

    python -m bench.areas.gateway_back 20

Starts the whole product with `voxbridge up` and a stand-in for the models, opens Studio, and kills the gateway that many times, each at a
random moment 2 to 5 s after it was ready again, when the next gateway stands by. The clock starts at the kill; it covers the supervisor's
wait, the start of the next gateway and the pauses between the page's attempts. Prints one JSON line.
"""

from __future__ import annotations

import random
import sys
import time
from types import SimpleNamespace
from typing import Any, Final, cast

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.program import put, result
from bench.report import Figure

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
    found = await result("bench.areas.gateway_back", str(times), kind=Returns, within_s=TIMEOUT_S)
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
    from bench.clients.chromium import product_and_browser, studio
    from tests.browser.stage.thread import in_thread
    from tests.voice.model_server import ModelServer

    seed = random.SystemRandom().randrange(1 << 32)
    chance, found = random.Random(seed), list[float]()
    with in_thread(ModelServer()) as models, product_and_browser(cast("Any", SimpleNamespace(base_url=models.url))) as (product, browser):
        watched = studio(browser, product)
        watched.start()
        for _ in range(times):
            watched.page.wait_for_timeout(chance.uniform(2_000, 5_000))
            product.kill("gateway")
            began = time.monotonic()
            watched.until("(s) => s.connection !== 'connected'")
            watched.until("(s) => s.connection === 'connected'")
            found.append((time.monotonic() - began) * 1_000)
            product.until_ready()
    return Returns(seed, found)


if __name__ == "__main__":
    put(returns(int(sys.argv[1])))
