"""The resources that the sessions of a process share, and the offer that they begin with."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from voxbridge.services.voice.audio.vad import VoiceModel
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.turns import reopening
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.services.voice.providers.realtime.handles import Handles
from voxbridge.services.voice.providers.realtime.registry import Vendors
from voxbridge.services.voice.session.stall_guard import StallGuard
from voxbridge.shared.agents.model import AgentTeam
from voxbridge.shared.awareness.view import NOTHING, View
from voxbridge.shared.bus.client import FastClient
from voxbridge.shared.clock import Clock
from voxbridge.shared.config import Config
from voxbridge.shared.log.reader import Log
from voxbridge.shared.macros.triggers import Spoken
from voxbridge.shared.store.store import Function
from voxbridge.shared.things import Things

STT_PATIENCE: Final = 2
"""Factor by which the wait for speech recognition is longer than for other models: without it the user has to repeat everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Resources that all sessions of a process share."""

    config: Config
    clock: Clock
    log: Log
    audio_nc: FastClient
    models: Models
    vad: VoiceModel
    worker: str
    stall_guard: StallGuard = field(default_factory=StallGuard)
    vendors: Vendors | None = None
    handles: Handles | None = None


class Offer(NamedTuple):
    """Offer of the installation to a session that begins."""

    functions: tuple[Function, ...] = ()
    providers: tuple[str, ...] = ("local", "echo")
    team: AgentTeam | None = None
    record: bool = False
    macros: tuple[Spoken, ...] = ()
    unheard: tuple[str, ...] = ()
    names: Things = MappingProxyType({})
    screen: View = NOTHING

    def opened(self, place: Workplace, term: int) -> inputs.Opened:
        """Return the input that begins a session on this worker, with the settings of the installation."""
        config = place.config
        return inputs.Opened(
            worker=place.worker,
            term=term,
            model=config.llm_model,
            voice="",
            greeting=config.greeting,
            functions=self.functions,
            providers=self.providers,
            idle_timeout_s=config.idle_timeout_s,
            turn_timeout_s=config.turn_timeout_s,
            speak_results=place.models.local,
            tells_ends=True,
            rules=inputs.RULES,
            resume_window_s=config.resume_window_s,
            model_patience_s=config.model_patience_s,
            stt_patience_s=STT_PATIENCE * config.model_patience_s,
            team=self.team,
            record=self.record,
            tool_rounds=config.tool_rounds,
            filler=config.filler == "on",
            language=config.language,
            prices=config.price_list,
            reopens=reopening.LIMIT,
            macros=self.macros,
            unheard=self.unheard,
            names={function: dict(named) for function, named in self.names.items()},
            screen=self.screen,
        )
