"""Opening of a session: its settings, its agents, and why it cannot begin. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from voxbridge.services.voice.core import agents as session_agents
from voxbridge.services.voice.core import ending, inputs, page_functions
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.state import Settings
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import turns
from voxbridge.shared.agents.model import Agent
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev


def open_session(t: Transition, input: inputs.Opened) -> None:
    """Open the session with the options of its request, or end it with the reason why it cannot begin."""
    request = t.state.request
    if request is None:
        raise RuntimeError("a session is opened by its request")
    t.ownership.term = input.term
    t.append(ev.SessionOwned(worker=input.worker, term=input.term))
    agents = session_agents.of(request, input)
    code, message = _wrong(request.mode, agents[0], input.providers)
    if not message and request.functions:
        code, message = page_functions.wrong(request.functions, input.functions, agents)
    if message:
        ending.end(t, "refused", ev.Failure(code=code, message=f"Session start failed: {message}"))
        return
    t.state.phase = "open"
    t.state.settings = Settings(
        idle_timeout_s=input.idle_timeout_s,
        turn_timeout_s=input.turn_timeout_s,
        tool_rounds=input.tool_rounds,
        reopens=input.reopens,
        speak_results=input.speak_results,
        tells_ends=input.tells_ends,
        filler=input.filler,
        language=input.language,
        prices=input.prices,
        resume_window_s=input.resume_window_s,
        model_patience_s=input.model_patience_s,
        stt_patience_s=input.stt_patience_s or input.model_patience_s,
        recorded=input.record,
    )
    t.client.reports_playback = request.client.protocol == "voxbridge.v1"
    t.team.catalogue = page_functions.offered(input.functions, request) if request.mode != "echo" else ()
    t.team.agents = agents if agents[0].name else ()
    t.team.usual = input.model
    t.team.providers = input.providers if input.tool_rounds else ()  # see `Opened.tool_rounds`
    session_agents.enter(t, agents[0])
    t.append(
        ev.SessionStarted(
            mode=request.mode,
            model=t.team.model,
            voice=t.team.voice,
            output=t.team.output,
            tools=tuple(function.name for function in t.team.functions),
            agent=t.team.agent.name,
            agents=tuple(agent.name for agent in t.team.agents),
            pipeline=input.team.pipeline if input.team is not None else "",
            recorded=input.record,
        )
    )
    t.outputs.append(out.Route(listening.route_of(t)))
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
    if agents[0].realtime is not None:
        realtime_connection.begin(t, agents[0])
    if agents[0].greeting and request.mode != "echo":
        turns.notice(t, agents[0].greeting)


def _wrong(mode: str, agent: Agent, providers: Sequence[str]) -> tuple[Code, str]:
    """Return why a session cannot begin: an unsupported option, or a provider that is not configured here. Empty message: it can."""
    if mode != "echo" and agent.realtime is not None and agent.output == "text":
        model = session_agents.model_of(agent, "")
        return Code.INVALID_ARGUMENT, f"`output` must be audio with {model}, which speaks itself; leave it out, or choose another model."
    missing = sorted({mode} - set(providers) if mode == "echo" else session_agents.providers(agent) - set(providers))
    if not missing:
        return Code.PROVIDER_UNAVAILABLE, ""
    message = f"no provider for mode {mode!r} is configured here; there is {', '.join(providers)}."
    if mode != "echo":
        keys = " and ".join(f"{name.upper()}_API_KEY" for name in missing)
        message += f" Set {keys}, or give the key to POST /api/config/keys."
    return Code.PROVIDER_UNAVAILABLE, message
