"""The terminals service: runs programs in terminals, and answers `vx.svc.terminals.<host>.<verb>`.

Owns the wiring: the folder, the holder, the questions and the live subjects. Does not own the programs (`holder`), which notice nothing
when this process dies: the next one reads on where this one stopped, and draws the same screens. Without NATS the programs run on and
nobody sees them; once it is back viewers attach again. Without this service one sentence says so. Where the holder dies its programs end
with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg
from nats.micro.request import Request

from voxbridge.services.terminals.fleet import Fleet
from voxbridge.services.terminals.folder import private
from voxbridge.services.terminals.life import Lives
from voxbridge.services.terminals.tape import Limits, Tapes
from voxbridge.shared.bus.subjects import TERMINALS_STREAM
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.service.process import Resources, Service
from voxbridge.shared.step.effects import Tasks
from voxbridge.shared.terminals import live, questions
from voxbridge.shared.terminals.model import LOCAL_HOST, Card

WAITING_LIMIT: Final = 128
"""Questions that are open at a time."""

AGAIN_S: Final = 2.0
"""Seconds between two tries to find the stream of the terminals' logs."""

WRITTEN_S: Final = 1.5
"""Seconds that what waits for the log has at the end of the service."""

_log = logging.getLogger(__name__)
_encoder: Final = msgspec.json.Encoder()


class TerminalsService(Service):
    """The process of the terminals service of a host. Make it with `build`."""

    def __init__(self, resources: Resources, folder: Path) -> None:
        self._nc = resources.events_nc
        self._log = resources.log
        self._lives = Lives(resources.log, resources.clock, resources.process_id)
        config = resources.config
        self._tapes = Tapes(folder, resources.clock, Limits(config.terminal_screens_hours, config.terminal_screens_mb * 1_000_000))
        self._fleet = Fleet(folder, resources.clock, self._publish, self._told, self._lives, self._tapes)
        self._sending = Tasks[None]("the terminals service")
        self._asking = Tasks[None]("questions to the terminals service")
        self._open = self._asked = 0
        self._stopping = asyncio.Event()
        self._typed = msgspec.msgpack.Decoder(live.Typed)

    def stats(self) -> Mapping[str, float]:
        """Return counts: terminals, questions that were asked and that are open, logs, and happenings that these lack yet."""
        kept = {"logs": len(self._lives), "unwritten": self._lives.waiting()}
        return {"terminals": len(self._fleet), "asked": self._asked, "open": self._open, **kept}

    def health(self) -> Mapping[str, bool]:
        """Return whether the holder answers."""
        return {"holder": self._fleet.connected}

    async def prepare(self, resources: Resources) -> None:
        """Go on with what is there, and answer questions."""
        self._sending.background(self._logged(resources.config))
        self._sending.background(self._tapes.keep())
        await self._fleet.open()
        for question in questions.QUESTIONS:
            subject = questions.question_subject(LOCAL_HOST, question.verb)
            handler = partial(self._handle, question)
            await resources.micro.add_endpoint(name=question.verb, subject=subject, handler=handler)
        await self._nc.subscribe(live.typed_subject(LOCAL_HOST, "*"), cb=self._keys)
        for card in self._fleet.cards().terminals:
            self._told(card.id, card)

    async def serve(self) -> None:
        """Answer until drained."""
        await self._stopping.wait()

    async def drain(self) -> None:
        """Take no more questions, and leave the programs to the next process."""
        self._stopping.set()
        self._asking.cancel_background()
        await self._asking.background_idle(1.0)
        self._fleet.kept()
        await self._fleet.close()
        await self._lives.close(WRITTEN_S)
        self._sending.cancel_background()

    async def _logged(self, config: Config) -> None:
        """Find the stream of the terminals' logs, or make it. Programs do not wait for it."""
        while True:
            try:
                await self._log.ensure_streams(
                    retention_days=config.event_retention_days, replicas=config.replica_count, only=(TERMINALS_STREAM,)
                )
            except VoxbridgeError as error:
                _log.warning("the logs of terminals wait: %s", error.message)
                await asyncio.sleep(AGAIN_S)
            else:
                self._lives.open()
                return

    async def _handle(self, kind: type[questions.Question[Any]], request: Request) -> None:
        # A question may wait for half a minute, so the answers are made beside each other.
        self._asked += 1
        if self._stopping.is_set():
            await _refuse(request, VoxbridgeError(Code.UNAVAILABLE, "The terminals service is being stopped. Ask again.", retryable=True))
        elif self._open >= WAITING_LIMIT:
            message = f"The terminals service works on {WAITING_LIMIT} questions already. Ask again in a moment."
            await _refuse(request, VoxbridgeError(Code.OVERLOADED, message, limit=WAITING_LIMIT, retry_after_ms=1_000))
        else:
            self._open += 1
            self._asking.background(self._answered(kind, request))

    async def _answered(self, kind: type[questions.Question[Any]], request: Request) -> None:
        try:
            answer = await self._fleet.answer(msgspec.json.decode(request.data, type=kind))
            await request.respond(_encoder.encode(answer))
        except msgspec.MsgspecError as error:
            await _refuse(request, VoxbridgeError(Code.INVALID_ARGUMENT, f"The question cannot be read: {error}."))
        except VoxbridgeError as error:
            await _refuse(request, error)
        except Exception:  # noqa: BLE001 - whoever asked is answered
            _log.exception("a question (%s) failed.", kind.verb)
            await _refuse(request, VoxbridgeError(Code.INTERNAL, "The terminals service failed; its log says why."))
        finally:
            self._open -= 1

    async def _keys(self, message: Msg) -> None:
        try:
            typed = self._typed.decode(message.data)
        except msgspec.MsgspecError as error:
            _log.warning("keys on %s cannot be read: %s", message.subject, error)
            return
        self._fleet.type_into(message.subject.split(".")[3], typed.connection, typed.data)

    def _publish(self, terminal: str, output: live.Output) -> None:
        self._send(live.output_subject(LOCAL_HOST, terminal), live.encode_output(output))

    def _told(self, terminal: str, card: Card | None) -> None:
        self._send(live.card_subject(LOCAL_HOST, terminal), b"" if card is None else _encoder.encode(card))

    def _send(self, subject: str, data: bytes) -> None:
        if not self._stopping.is_set() and self._nc.is_connected:
            self._sending.background(self._nc.publish(subject, data))


async def _refuse(request: Request, error: VoxbridgeError) -> None:
    await request.respond_error(error.code, error.message, data=msgspec.json.encode(error.as_dict()))


async def build(resources: Resources) -> TerminalsService:
    """Build the service: go on with the terminals of the host, and answer questions."""
    service = TerminalsService(resources, private(resources.config.terminals_path))
    await service.prepare(resources)
    return service
