"""Figures of the gateway for Prometheus: plain integers on the fast paths, collected on request.

Owns `/metrics`. A crash here loses the counts; they begin again at 0, as Prometheus expects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from voxbridge.services.gateway.door.admission import Admission
from voxbridge.shared.log.unreadable import BROKEN

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics(Collector):
    """The counts of one gateway process."""

    def __init__(self) -> None:
        self.admission: Admission | None = None
        self.sockets = 0
        self.sessions = 0
        self.frames_in = 0
        self.frames_out = 0
        self.dropped: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.closes: Counter[int] = Counter()
        self.resumes: Counter[str] = Counter()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self.append_seconds = Histogram(
            "voxbridge_gateway_append_seconds", "Time until the log acknowledged an event.", buckets=_SECONDS, registry=self._registry
        )

    def collect(self) -> Iterable[Metric]:
        """Yield every figure with its current value."""
        yield GaugeMetricFamily("voxbridge_gateway_sockets", "Open VOX sockets.", value=self.sockets)
        yield GaugeMetricFamily("voxbridge_gateway_sessions", "Sessions held by open sockets.", value=self.sessions)
        frames = CounterMetricFamily("voxbridge_gateway_frames", "Audio frames forwarded.", labels=["direction"])
        frames.add_metric(["in"], self.frames_in)
        frames.add_metric(["out"], self.frames_out)
        yield frames
        yield CounterMetricFamily("voxbridge_gateway_events_unreadable", "Events of the log that could not be read.", value=BROKEN.count)
        if self.admission is not None:
            yield GaugeMetricFamily("voxbridge_log_used_bytes", "Bytes of the event log.", value=self.admission.used)
            yield GaugeMetricFamily("voxbridge_log_room_bytes", "Bytes that the event log may have.", value=self.admission.room)
        yield _by("voxbridge_gateway_frames_dropped", "Audio frames not forwarded, by reason.", "reason", self.dropped)
        yield _by("voxbridge_gateway_errors", "Errors said to clients, by code.", "code", self.errors)
        yield _by("voxbridge_gateway_closes", "Sockets that the gateway closed, by close code.", "code", self.closes)

        yield _by("voxbridge_gateway_resumes", "Resumes asked for: recovered, answered by a snapshot, refused.", "answer", self.resumes)

    def text(self, services: Iterable[Metric] = ()) -> bytes:
        """Return these figures and those of other services in the exposition format."""
        told = _Told(services)
        return generate_latest(self._registry) + generate_latest(told)


class _Told(CollectorRegistry):
    """A registry of families collected elsewhere."""

    def __init__(self, families: Iterable[Metric]) -> None:
        super().__init__(auto_describe=False)
        self._families = tuple(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _by(name: str, text: str, label: str, counts: Counter[str] | Counter[int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, value in counts.items():
        family.add_metric([str(key)], value)
    return family
