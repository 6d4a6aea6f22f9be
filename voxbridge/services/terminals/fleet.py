"""The terminals of a host: the list, what each question does, and what is kept of them.

Owns the folder: a record and a ring for each terminal, and the definitions that were added. Killed, it is made again from them and from
what the holder holds. Where the holder was lost its terminals have ended: they stay on the list, say so, and can be restarted.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from voxbridge.services.terminals import answers, integration
from voxbridge.services.terminals.commands import Last
from voxbridge.services.terminals.core.life import Started
from voxbridge.services.terminals.definitions import Definitions, environment, offer
from voxbridge.services.terminals.holder.client import Hello, HolderClient
from voxbridge.services.terminals.life import Lives
from voxbridge.services.terminals.tape import Tapes
from voxbridge.services.terminals.terminal import Meta, Terminal
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals import peers
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.live import Output
from voxbridge.shared.terminals.model import Card, Definition, Submit
from voxbridge.shared.terminals.names import life_of, token_of

LIMIT: Final = 64
"""Terminals of a host."""

ISOLATION: Final = "Programs run as the user who started Voxbridge, with an allow-list of variables, and are not confined."
LOST: Final = "The process that held it is gone, and its program with it."

_log = logging.getLogger(__name__)


class Fleet:
    """The terminals of this host. `publish` sends a terminal's output, `told` its card; an id without a card is one that was closed.
    `lives` keeps what happens in them, `tapes` what they show."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        publish: Callable[[str, Output], None],
        told: Callable[[str, Card | None], None],
        lives: Lives,
        tapes: Tapes,
    ) -> None:
        self._folder, self._clock = folder, clock
        self._publish, self._told, self._lives, self._tapes = publish, told, lives, tapes
        self._terminals: dict[str, Terminal] = {}
        self._cards: dict[str, Card] = {}
        self._active = ""
        self._news = asyncio.Event()
        self._orders = 0
        self._boot = ""
        self._closing: set[str] = set()
        self._connecting = asyncio.Lock()
        self._saving: dict[str, asyncio.TimerHandle] = {}
        self._definitions = Definitions(folder / "definitions.json")
        self._holder = HolderClient(folder, self._ended, self._lost)

    def __len__(self) -> int:
        return len(self._terminals)

    @property
    def connected(self) -> bool:
        """Tell whether the holder answers."""
        return bool(self._boot)

    async def open(self) -> None:
        """Find what a process before left, and go on with it."""
        records = sorted(self._folder.glob("*.terminal"))
        metas = []
        for record in records:
            try:
                metas.append(msgspec.json.decode(record.read_bytes(), type=Meta))
            except (msgspec.MsgspecError, OSError) as error:
                _log.warning("the record %s of a terminal cannot be read, and is left alone: %s", record.name, error)
        for meta in sorted(metas, key=lambda one: one.order):
            self._orders = max(self._orders, meta.order)
            self._active = meta.id if meta.active else self._active
            meta.life = meta.life or life_of(meta.id, meta.started)
            terminal = self._add(meta)
            self._begun(meta)  # a process that was killed may not have written this
            if not terminal.alive:
                self._lives.ended(meta.life, meta.code, meta.ended)
        await self._connect()

    async def _connect(self) -> None:
        """Connect to the holder, and take the descriptor of each terminal that lives there."""
        async with self._connecting:
            if self._boot:
                return
            hello = await self._holder.connect()
            self._boot = hello.boot
            held = {one.id: one for one in hello.terminals}
            for terminal in list(self._terminals.values()):
                await self._joined(terminal, hello)
            for name in held.keys() - self._terminals.keys():  # started by a process that died before it could write it down
                await self._holder.end(name)

    async def _joined(self, terminal: Terminal, hello: Hello) -> None:
        """Go on with a terminal of the holder; one that is not there has ended."""
        known = next((one for one in hello.terminals if one.id == terminal.meta.id), None)
        if known is None or terminal.meta.boot != hello.boot:
            if terminal.alive:
                self._over(terminal, None, LOST)
            return
        answer = await self._holder.ask("take", id=terminal.meta.id)
        if answer.descriptor is not None:
            terminal.connect(answer.descriptor)
        if known.code is not None and terminal.alive:
            self._over(terminal, known.code, _sentence(known.code))

    async def close(self) -> None:
        """Leave the holder and its terminals to a successor."""
        for name, timer in list(self._saving.items()):
            timer.cancel()
            self._save(name)
        self._holder.close()
        for terminal in self._terminals.values():
            terminal.close(keep=True)

    def kept(self) -> None:
        """Keep each screen, from which a successor goes on."""
        for terminal in self._terminals.values():
            terminal.keep()

    def cards(self) -> asked.Cards:
        """Return every terminal."""
        cards = tuple(self._card(one) for one in self._terminals.values())
        unseen = sum(1 for card in cards if card.state.phase == "done" and not card.seen)
        needs = sum(1 for card in cards if card.needs_you)
        return asked.Cards(host="local", terminals=cards, isolation=ISOLATION, unseen=unseen, needs_you=needs)

    def type_into(self, terminal: str, connection: str, data: bytes) -> None:
        """Take what a person typed; of a connection that does not have the keys nothing is taken."""
        one = self._terminals.get(terminal)
        if one is not None and one.alive and one.held_connection in ("", connection):
            if not one.echo_off():  # nor is it kept how long a password is
                self._lives.typed(one.meta.life, connection, len(data))
            one.typed(data)

    async def answer(self, question: asked.Question[Any]) -> msgspec.Struct:
        """Answer a question. Raises what it is refused for."""
        if isinstance(question, asked.ListTerminals):
            return self.cards()
        if isinstance(question, asked.Watch):
            return await self._watched(question)
        if isinstance(question, asked.ListDefinitions):
            return asked.Offers(offers=self._definitions.offers())
        if isinstance(question, asked.Define):
            self._definitions.add(question.definition)
            return asked.Offers(offers=self._definitions.offers())
        if isinstance(question, asked.Undefine):
            self._definitions.remove(question.definition)
            return asked.Offers(offers=self._definitions.offers())
        if isinstance(question, asked.Start):
            return await self._start(question)
        if isinstance(question, asked.Past):
            return await self._tapes.shown(question.life, question.at_ms)
        if isinstance(question, asked.ReadTape):
            return await self._tapes.read(question.life, question.from_ms, question.offset)
        if isinstance(question, asked.Forget):
            self._forget(question.life)
            return asked.Done()
        if isinstance(question, asked.OfTerminal):
            return await self._of_terminal(question)
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"There is no question {question.verb}.")

    async def _watched(self, question: asked.Watch) -> asked.Cards:
        with suppress(TimeoutError):
            async with asyncio.timeout(question.timeout_s):
                while {one.id: one.changed_at for one in self.cards().terminals} == question.known:
                    await self._news.wait()
        return self.cards()

    def _forget(self, life: str) -> None:
        if any(one.meta.life == life for one in self._terminals.values()):
            raise VoxbridgeError(Code.CONFLICT, "The terminal lives. Close it first.", field="life")
        self._tapes.forget(life)

    async def _of_terminal(self, question: asked.OfTerminal[Any]) -> msgspec.Struct:
        terminal = self._terminals.get(question.terminal)
        if terminal is None:
            message = f"There is no terminal {question.terminal}. List the terminals to see which there are."
            raise VoxbridgeError(Code.NOT_FOUND, message, field="terminal")
        found = await answers.answer(terminal, question, self._submit(terminal), self._clock)
        if isinstance(question, asked.Send | asked.SendKey) and isinstance(found, asked.Sent):
            self._lives.sent(terminal.meta.life, question, found)
        if found is not None:
            return found
        if isinstance(question, asked.Close):
            return await self._close(terminal, question.by)
        await self._changed_by(terminal, question)
        terminal.tell()
        return self._card(terminal)

    async def _changed_by(self, terminal: Terminal, question: asked.OfTerminal[Any]) -> None:
        if isinstance(question, asked.Restart):
            await self._restart(terminal, question.by, resume=question.resume)
        elif isinstance(question, asked.Resize):
            if terminal.alive:
                await self._holder.ask("resize", id=terminal.meta.id, columns=question.columns, rows=question.rows)
            terminal.resize(question.columns, question.rows)
            self._lives.resized(terminal.meta.life, question.columns, question.rows)
        elif isinstance(question, asked.SendSignal):
            if not terminal.alive:
                raise VoxbridgeError(Code.CONFLICT, f"The program is not running. {terminal.meta.ended or 'It has ended.'}")
            await self._holder.ask("signal", id=terminal.meta.id, signal=question.signal)
            self._lives.signalled(terminal.meta.life, question.by, question.signal)
        elif isinstance(question, asked.Rename):
            terminal.meta.name = question.name
            self._lives.renamed(terminal.meta.life, question.by, question.name)
        elif isinstance(question, asked.Activate):
            self._activate(terminal.meta.id)
        elif isinstance(question, asked.See):
            terminal.looked()
        elif isinstance(question, asked.Hold):
            terminal.hold(question.by, question.connection, take=question.take)

    async def _start(self, question: asked.Start) -> Card:
        if len(self._terminals) >= LIMIT:
            message = f"This host has {LIMIT} terminals, which is the most. Close one."
            raise VoxbridgeError(Code.TOO_LARGE, message, limit=LIMIT)
        definition = self._definitions.get(question.definition)
        directory = _folder(question.directory)
        name = question.name.strip() or self._name(definition.title)
        self._orders += 1
        meta = Meta(
            id=token_of(name, self._terminals.keys() | self._closing), name=name, workspace=question.workspace, definition=definition.id,
            kind=definition.kind, directory=str(directory), manifest=definition.manifest or definition.id,
            integration=definition.integration, columns=question.columns, rows=question.rows, nonce="", order=self._orders, run=0,
            resumable=bool(definition.resume),
        )  # fmt: skip
        meta.life = life_of(meta.id, self._clock.now_us())
        await self._run(meta, definition, definition.command, question.by)
        terminal = self._terminals[meta.id]
        if not self._active:
            self._activate(meta.id)
        terminal.tell()
        return self._card(terminal)

    async def _run(self, meta: Meta, definition: Definition, command: tuple[str, ...], by: str) -> None:
        """Start the program of a terminal, for the first time or again."""
        found = offer(definition)
        if found.missing:
            raise VoxbridgeError(Code.NOT_FOUND, found.missing, field="definition")
        await self._connect()
        meta.nonce, meta.secret = secrets.token_hex(16), secrets.token_hex(16)
        argv, more = integration.started(definition, command, meta.nonce)
        env = environment(definition) | more | {peers.SECRET: meta.secret}
        started = await self._holder.ask(
            "start", id=meta.id, argv=argv, env=env, directory=meta.directory, columns=meta.columns, rows=meta.rows
        )
        meta.boot, meta.pid, meta.started, meta.by = self._boot, started.body["pid"], started.body["started"], by
        meta.run += 1
        meta.code, meta.ended, meta.left, meta.seen, meta.known, meta.last, meta.at = None, "", (), True, None, Last(), 0
        terminal = self._terminals.get(meta.id)
        if terminal is None:
            terminal = self._add(meta)
        else:
            terminal.restarted(meta)
        self._begun(meta)
        self._save(meta.id)
        if started.descriptor is not None:
            terminal.connect(started.descriptor)

    def _over(self, terminal: Terminal, code: int | None, sentence: str) -> None:
        terminal.ended(code, sentence)
        self._lives.ended(terminal.meta.life, code, sentence)

    def _begun(self, meta: Meta) -> None:
        noticed = Started(
            at=meta.started or self._clock.now_us(), by=meta.by, terminal=meta.id, name=meta.name, workspace=meta.workspace,
            definition=meta.definition, kind=meta.kind, directory=meta.directory, columns=meta.columns, rows=meta.rows, run=meta.run,
            pid=meta.pid,
        )  # fmt: skip
        self._lives.started(meta.life, noticed)

    async def _restart(self, terminal: Terminal, by: str, *, resume: bool) -> None:
        definition = self._definitions.get(terminal.meta.definition)
        if resume and not definition.resume:
            message = f"{definition.title} has no command that goes on with a conversation. Restart it without `resume`."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="resume")
        await self._end(terminal)
        await self._run(terminal.meta, definition, definition.resume if resume else definition.command, by)

    async def _close(self, terminal: Terminal, by: str) -> Card:
        name = terminal.meta.id
        self._closing.add(name)
        try:
            left = await self._end(terminal)
        finally:
            self._closing.discard(name)
        terminal.meta.left = tuple(left)
        card = self._card(terminal)
        del self._terminals[name]
        self._cards.pop(name, None)
        if (timer := self._saving.pop(name, None)) is not None:
            timer.cancel()
        terminal.close(keep=False)
        self._tapes.close(terminal.meta.life)
        (self._folder / f"{name}.terminal").unlink(missing_ok=True)
        self._lives.closed(terminal.meta.life, by, terminal.meta.left)
        if self._active == name:
            self._activate(next(iter(self._terminals), ""))
        self._tell(name, None)
        return card

    async def _end(self, terminal: Terminal) -> list[str]:
        """End everything in a terminal; return what lives on."""
        if terminal.meta.boot != self._boot or not self._boot:
            return []
        left, code = await self._holder.end(terminal.meta.id)
        if terminal.alive:
            self._over(terminal, code, _sentence(code))
        terminal.disconnect()
        return left

    def _activate(self, name: str) -> None:
        self._active = name
        for terminal in self._terminals.values():
            terminal.meta.active = terminal.meta.id == name
            terminal.tell()

    def _add(self, meta: Meta) -> Terminal:
        terminal = Terminal(meta, self._folder, self._clock, lambda output: self._publish(meta.id, output), self._changed)
        self._terminals[meta.id] = terminal
        terminal.tape = self._tapes.open(meta.life, lambda: terminal.screen)
        return terminal

    def _name(self, title: str) -> str:
        taken = {one.meta.name for one in self._terminals.values()}
        return next(name for name in (title, *(f"{title} {number}" for number in range(2, LIMIT + 2))) if name not in taken)

    def _submit(self, terminal: Terminal) -> Submit:
        with suppress(VoxbridgeError):  # its definition may have been removed since it was started
            return self._definitions.get(terminal.meta.definition).submit
        return Submit()

    def _card(self, terminal: Terminal) -> Card:
        return terminal.card(active=terminal.meta.id == self._active, isolation=ISOLATION)

    def _changed(self, terminal: Terminal) -> None:
        name = terminal.meta.id
        if name not in self._terminals:
            return
        if terminal.alive:
            self._lives.heard(terminal.meta.life, terminal.known.words)
        card = self._card(terminal)
        if self._cards.get(name) == card:
            return
        self._cards[name] = card
        self._tell(name, card)
        if name not in self._saving:
            self._saving[name] = asyncio.get_running_loop().call_later(0.2, self._save, name)

    def _tell(self, name: str, card: Card | None) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
        self._told(name, card)

    def _save(self, name: str) -> None:
        self._saving.pop(name, None)
        terminal = self._terminals.get(name)
        if terminal is None:
            return
        path = self._folder / f"{name}.terminal"
        fresh = path.with_suffix(".new")
        try:
            fresh.write_bytes(msgspec.json.encode(terminal.meta))
            os.replace(fresh, path)  # noqa: PTH105 - as atomic as it reads
        except OSError as error:
            _log.warning("the record of %s cannot be written: %s", name, error)

    def _ended(self, name: str, code: int) -> None:
        terminal = self._terminals.get(name)
        if terminal is not None and terminal.alive:
            self._over(terminal, code, _sentence(code))

    def _lost(self) -> None:
        _log.error("the holder of terminals is gone: every program in a terminal ended with it.")
        self._boot = ""
        for terminal in self._terminals.values():
            if terminal.alive:
                self._over(terminal, None, LOST)
            terminal.disconnect()


def _folder(named: str) -> Path:
    folder = Path(named).expanduser() if named else Path.home()
    if not folder.is_absolute() or not folder.is_dir():
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no folder {named or folder} on this host. Give its whole path.", field="directory")
    return folder


def _sentence(code: int | None) -> str:
    if code is None:
        return "It was ended."
    return f"It ended with exit code {code}." if code >= 0 else f"It was ended by signal {-code}."
