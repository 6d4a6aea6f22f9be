"""The measurement: what the router makes of a set, and what the local model does with it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from bench.choice import sets
from bench.choice.asking import Answer, Asker, offered
from bench.figures import quantile
from voxbridge.services.models.api import routers
from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.choice.router import Router
from voxbridge.shared.agents.functions import Function

ROUNDS: Final = 3
"""Times that the router is asked each request, for its cost."""


class Routing(msgspec.Struct, frozen=True):
    """Choices of the router for a set: each request's function and its place in the shortlist (0: not in it), how many wanted a call, and
    its cost in ms."""

    functions: int
    places: list[tuple[str, int]]
    modes: dict[str, int]
    talk_modes: dict[str, int]
    train_s: float
    cost_p50_ms: float
    cost_p95_ms: float

    def hit(self, within: int) -> float:
        """Return the share of requests whose function is among the first so many, in %."""
        return 100 * sum(1 <= place <= within for _, place in self.places) / len(self.places)


class Measured(msgspec.Struct, frozen=True):
    """One measurement of a set. `load` is the load average before it."""

    taken_at: str
    name: sets.Name
    routing: Routing
    answers: list[Answer]
    load: float

    def of(self, kind: str) -> list[Answer]:
        """Return the answers of one kind: `request`, `talk`, `wish`, `follow-up`."""
        return [answer for answer in self.answers if answer.kind == kind]


def share(answers: Iterable[bool]) -> float:
    """Return the share of what is true, in %."""
    found = list(answers)
    return 100 * sum(found) / len(found) if found else 0.0


def decision_s(answers: Iterable[Answer]) -> float:
    """Return the median of the seconds until a call stood, 0 without any."""
    return statistics.median([answer.seconds for answer in answers if answer.called] or [0.0])


def asked(name: sets.Name, functions: Sequence[Function]) -> list[tuple[str, sets.Request]]:
    """Return the requests of a set that want one of the functions."""
    names = {function.name for function in functions}
    return [(tool, request) for tool, request in sets.requests(name) if tool in names]


def routing(name: sets.Name, functions: Sequence[Function]) -> Routing:
    """Ask the router alone, as the models service does."""
    tools = ChatRequest.model_validate({"messages": [{"role": "user", "content": "x"}], "tools": offered(functions)}).offered()
    table = routers.read_meanings()
    began = time.perf_counter()
    router = Router([routers.known(tool) for tool in tools], table)
    trained = time.perf_counter() - began
    places: list[tuple[str, int]] = []
    modes: dict[str, int] = {}
    costs: list[float] = []
    for function, request in asked(name, functions):
        for _ in range(ROUNDS):
            began = time.perf_counter()
            decision = router.decide(request.say)
            costs.append(1_000 * (time.perf_counter() - began))
        modes[decision.mode] = modes.get(decision.mode, 0) + 1
        places.append((function, decision.shortlist.index(function) + 1 if function in decision.shortlist else 0))
    talked: dict[str, int] = {}
    for line in sets.talk(name):
        mode = router.decide(line).mode
        talked[mode] = talked.get(mode, 0) + 1
    costs.sort()
    p50, p95 = round(quantile(costs, 50), 3), round(quantile(costs, 95), 3)
    return Routing(len(tools), places, modes, talked, round(trained, 3), p50, p95)


def answers(asker: Asker, name: sets.Name, functions: Sequence[Function], say: Callable[[str], None], *, every: int = 1) -> list[Answer]:
    """Ask the local model each request of a set that wants one of the functions, or every so many of them."""
    found: list[Answer] = []
    wanted, names = asked(name, functions)[::every], {function.name for function in functions}
    for number, (tool, request) in enumerate(wanted):
        if number % 20 == 0:
            say(f"choices: request {number + 1} of {len(wanted)}")
        found.append(asker.request(tool, request))
    say("choices: small talk, wishes and follow-ups")
    found += [asker.talk(line) for line in sets.talk(name)[::every]]
    found += [asker.talk(line, "wish") for line in sets.wishes(name)[::every]]
    follow_ups = [one for one in sets.follow_ups(name) if not one.tool or one.tool in names]
    found += [asker.follow_up(one) for one in follow_ups[::every]]
    return found
