"""Opening of a session: its settings, its agents, and why it cannot begin. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from voxbridge.services.voice.core import agents as session_agents
from voxbridge.services.voice.core import allowance, child, ending, inputs, page_functions
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.cascade import listening
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.state import Settings, State
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import open_calls, screen, turns
from voxbridge.shared.agents.model import Agent
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.gateway import SessionOptions, SessionRequested


def open_session(t: Transition, input: inputs.Opened) -> None:
    """Open the session with the options of its request, or end it with the reason why it cannot begin."""
    request = t.state.request
    if request is None:
        raise RuntimeError("a session is opened by its request")
    t.ownership.term = input.term
    t.append(ev.SessionOwned(worker=input.worker, term=input.term))
    agents = session_agents.of(request, input)
    code, message = _wrong(request.mode, agents[0], input)
    if not message:
        code, message = _unsupported(request, agents)
    if not message and request.functions:
        code, message = page_functions.wrong(request.functions, input.functions, agents)
    if message:
        ending.end(t, "refused", ev.Failure(code=code, message=f"Session start failed: {message}"))
        return
    t.state.phase = "open"
    t.state.settings = child.settings(_settings(input, request.options), request.child)
    t.client.reports_playback = request.client.protocol == "voxbridge.v1"
    t.team.catalogue = child.offered(page_functions.offered(input.functions, request), request.child) if request.mode != "echo" else ()
    t.team.agents = agents if agents[0].name else ()
    t.team.usual = input.model
    t.team.macros = input.macros if is_the_accounts(t.state) else ()
    t.pending.unheard = input.unheard if is_told(t.state) else ()
    t.team.names = input.names if request.key is None else {}
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
    child.begin(t)
    allowance.begin(t)
    if agents[0].speaks_itself:
        realtime_connection.begin(t, agents[0])
    if is_the_accounts(t.state):
        screen.know(t, input.screen)
    if request.mode != "echo" and request.child is None:
        open_calls.start(t)
    if agents[0].greeting and request.mode != "echo" and request.child is None:
        turns.notice(t, agents[0].greeting, greeting=True)


def _settings(input: inputs.Opened, options: SessionOptions) -> Settings:
    return Settings(
        idle_timeout_s=input.idle_timeout_s,
        turn_timeout_s=input.turn_timeout_s,
        tool_rounds=input.tool_rounds,
        reopens=input.reopens,
        speak_results=input.speak_results,
        tells_ends=input.tells_ends,
        rules=input.rules,
        filler=input.filler,
        language=options.language or input.language,
        options=options,
        prices=input.prices,
        resume_window_s=input.resume_window_s,
        model_patience_s=input.model_patience_s,
        stt_patience_s=input.stt_patience_s or input.model_patience_s,
        recorded=input.record,
    )


def _unsupported(request: SessionRequested, agents: Sequence[Agent]) -> tuple[Code, str]:
    """Return why a session cannot have its options: a model that hears and speaks itself decides some things itself."""
    options = request.options
    wanted = {"speed": options.speed != 1.0, "bargeInWords": options.barge_in_words, "pushToTalk": options.push_to_talk}
    asked = [name for name, is_asked in wanted.items() if is_asked]
    speaks = next((agent for agent in agents if agent.realtime is not None), None)
    if not asked or speaks is None:
        return Code.INVALID_ARGUMENT, ""
    model = session_agents.model_of(replace(speaks, output="audio"), "")
    return Code.INVALID_ARGUMENT, f"{', '.join(asked)} cannot be set with {model}, which decides that itself; leave it out."


def is_the_accounts(state: State) -> bool:
    """Tell whether it is a user of the account who speaks: not another function, and not whoever has a publishable key."""
    return state.request is not None and state.request.child is None and state.request.key is None


def is_told(state: State) -> bool:
    """Tell whether a session is told of what its account has left to tell: one with a user of it."""
    return is_the_accounts(state) and state.request is not None and state.request.mode != "echo"


def _wrong(mode: str, agent: Agent, opened: inputs.Opened) -> tuple[Code, str]:
    """Return why a session cannot begin: an unsupported option, or a provider that is not configured here. Empty message: it can."""
    providers = opened.providers
    if mode != "echo" and agent.realtime is not None and agent.output == "text" and opened.rules < inputs.WRITES:
        model = session_agents.model_of(replace(agent, output="audio"), "")
        return Code.INVALID_ARGUMENT, f"`output` must be audio with {model}, which speaks itself; leave it out, or choose another model."
    missing = sorted({mode} - set(providers) if mode == "echo" else session_agents.providers(agent) - set(providers))
    if not missing:
        return Code.PROVIDER_UNAVAILABLE, ""
    message = f"no provider for mode {mode!r} is configured here; there is {', '.join(providers)}."
    if mode != "echo":
        keys = " and ".join(f"{name.upper()}_API_KEY" for name in missing)
        message += f" Set {keys}, or give the key to POST /api/config/keys."
    return Code.PROVIDER_UNAVAILABLE, message
