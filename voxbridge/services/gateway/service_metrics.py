"""Figures of the services without HTTP of their own, requested over the bus when `/metrics` is read.

Owns the request, the time to wait for answers, and what is taken of them. Nothing is kept; a crash here loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from voxbridge.shared.service.process import Figures, figures_subject

SERVICES: Final = ("voice", "tools", "knowledge", "awareness", "terminals")
ANSWERS_S: Final = 0.25
"""Seconds to wait for answers: the number of processes is not known."""
PROCESSES_LIMIT: Final = 64
"""Processes of one service whose figures are shown; further answers are dropped."""
FIGURES_LIMIT: Final = 64
"""Figures taken of one process."""
_COUNTERS: Final = frozenset({"asked", "taken", "refused", "events_appended", "events_unreadable"})
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

_log = logging.getLogger(__name__)
_answers: Final = msgspec.json.Decoder(Figures)


async def ask(nc: Client) -> dict[str, list[Figures]]:
    """Return the figures of each process of each service that answers in time; empty lists while the bus is away."""
    found: dict[str, list[Figures]] = {name: [] for name in SERVICES}
    try:
        subscriptions = [await _listen(nc, name, found[name]) for name in SERVICES]
        await asyncio.sleep(ANSWERS_S)
        for subscription in subscriptions:
            await subscription.unsubscribe()
    except (NatsError, OSError) as error:
        _log.warning("figures of the services cannot be asked for: %s", error)
    return found


def families(found: dict[str, list[Figures]]) -> Iterable[Metric]:
    """Return the figures as `voxbridge_<service>_<figure>`, by process."""
    for service, processes in found.items():
        made: dict[str, Metric] = {}
        for process in sorted(processes, key=lambda one: one.process):
            for name, value in sorted(process.figures.items())[:FIGURES_LIMIT]:
                if _NAME.fullmatch(name):
                    family = made.get(name) or made.setdefault(name, _family(f"voxbridge_{service}_{name}", name))
                    family.add_metric([process.process], value)  # type: ignore[attr-defined]  # both kinds have it
        yield from made.values()


def _family(full: str, name: str) -> Metric:
    kind = CounterMetricFamily if name in _COUNTERS else GaugeMetricFamily
    return kind(full, f"{name.replace('_', ' ').capitalize()}, by process.", labels=["process"])


async def _listen(nc: Client, name: str, found: list[Figures]) -> Subscription:
    async def answered(message: Msg) -> None:
        try:
            one = _answers.decode(message.data)
        except msgspec.DecodeError as error:
            _log.warning("figures of %s cannot be read: %s", name, error)
            return
        if len(found) < PROCESSES_LIMIT:
            found.append(one)

    inbox = nc.new_inbox()
    subscription = await nc.subscribe(inbox, cb=answered)
    await nc.publish(figures_subject(name), b"", reply=inbox)
    return subscription
