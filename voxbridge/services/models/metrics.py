"""The figures of this service for Prometheus: seconds of requests by model, requests waiting, and models that are ready."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from voxbridge.services.models.engines.engines import Engines, Phase

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
BUCKETS: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)


class _State(Collector):
    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the figures that are read from the engines on request."""
        ready = GaugeMetricFamily("voxbridge_model_ready", "1 when the model serves.", labels=["model", "role"])
        for model in self._engines.models:
            ready.add_metric([model.id, model.role], float(self._engines.phases[model.id] is Phase.READY))
        inside = GaugeMetricFamily("voxbridge_model_requests", "Requests at work and waiting.", labels=["role"])
        for role, line in self._engines.lines.items():
            inside.add_metric([role], line.inside)
        inside.add_metric(["background"], self._engines.background.line.inside)
        waiting = GaugeMetricFamily("voxbridge_model_phrasings_waiting", "Functions whose requests the model is yet to write.")
        waiting.add_metric([], self._engines.phrasings.waiting)
        return [ready, inside, waiting]


class Meters:
    """The figures of one application."""

    def __init__(self, engines: Engines) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_State(engines))
        self._seconds = Histogram(
            "voxbridge_model_seconds", "Seconds a request took, waiting excluded.", ["role"], buckets=BUCKETS, registry=self._registry
        )
        self._failures = Counter(
            "voxbridge_model_failures", "Requests that ended in an error or were cancelled.", ["role"], registry=self._registry
        )

    @asynccontextmanager
    async def measure(self, role: str) -> AsyncIterator[None]:
        """Time a block for a role."""
        started = time.perf_counter()
        try:
            yield
        except BaseException:
            self._failures.labels(role).inc()
            raise
        finally:
            self._seconds.labels(role).observe(time.perf_counter() - started)

    def text(self) -> bytes:
        """Return the current figures as Prometheus text."""
        return generate_latest(self._registry)
