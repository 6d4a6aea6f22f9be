"""A fleet of real shells: what each question does, and what is there after the service, or the holder, is gone."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.terminals.fleets import BY, Viewed, fleet, held_folder
from voxbridge.services.terminals import definitions
from voxbridge.services.terminals import fleet as fleets
from voxbridge.services.terminals.holder.client import HolderClient
from voxbridge.services.terminals.holder.holder import SOCKET
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.terminals import peers
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Definition


@pytest.fixture
def folder() -> Iterator[Path]:
    with held_folder() as folder:
        yield folder


@pytest.fixture
async def here(folder: Path) -> AsyncIterator[Viewed]:
    async with fleet(folder) as here:
        yield here


async def test_a_command_is_submitted_with_proof_and_read(here: Viewed) -> None:
    bash = await here.start()
    sent = await here.send(bash, "printf 'one\\ntwo\\n'; (exit 3)")
    assert (sent.outcome, sent.proof) == ("submitted", "The shell says that a command began.")
    await here.wait(bash, "idle")
    seen = await here.ask(asked.Read(by=BY, terminal=bash, view="command"))
    assert (seen.text, seen.exit_code) == ("one\ntwo", 3)
    state = (await here.card(bash)).state
    assert (state.phase, state.reason, state.source) == ("done", "error", "shell")
    assert not (await here.card(bash)).seen
    await here.ask(asked.See(by=BY, terminal=bash))
    card = await here.card(bash)
    assert (card.state.phase, card.seen) == ("idle", True)


async def test_views_are_bounded_and_say_what_they_leave_out(here: Viewed) -> None:
    bash = await here.start()
    before = (await here.ask(asked.Read(by=BY, terminal=bash))).seq
    await here.send(bash, "seq 1 3000")
    await here.wait(bash, "idle")
    screen = await here.ask(asked.Read(by=BY, terminal=bash, lines=3))
    assert screen.text.splitlines()[:2] == ["2999", "3000"]
    above = await here.ask(asked.Read(by=BY, terminal=bash, view="scrollback", lines=1_000))
    assert len(above.text.splitlines()) == 1_000
    assert above.dropped > 0
    since = await here.ask(asked.Read(by=BY, terminal=bash, view="since", since=before, lines=5))
    assert since.text.splitlines()[-2:-1] == ["3000"]
    with pytest.raises(VoxbridgeError) as refused:
        await here.ask(asked.Read(by=BY, terminal=bash, view="since", since=10**9))
    assert refused.value.field == "since"


async def test_the_directory_and_the_title_are_told(here: Viewed, tmp_path: Path) -> None:
    bash = await here.start(directory=str(tmp_path), name="ワーク")
    assert (await here.card(bash)).directory == str(tmp_path)
    assert bash.isascii()
    await here.send(bash, "cd /tmp; printf '\\e]0;my title\\a'")
    await here.wait(bash, "idle")
    card = await here.card(bash)
    assert (card.directory, card.title, card.name) == ("/tmp", "my title", "ワーク")


async def test_a_password_is_typed_by_people_alone(here: Viewed) -> None:
    bash = await here.start()
    await here.send(bash, "read -rsp 'Passphrase: ' x; echo; echo got ${#x}")
    await here.wait(bash, "blocked")
    card = await here.card(bash)
    assert (card.state.reason, card.state.words, card.needs_you) == ("auth", "Passphrase:", True)
    assert "echo_off" in (await here.ask(asked.Read(by=BY, terminal=bash))).modes
    sent = await here.send(bash, "hunter2")
    assert (sent.outcome, sent.reason) == ("not_submitted", "The program reads a password, which only a person may type.")
    here.fleet.type_into(bash, "c1", b"abc\r")
    await here.wait(bash, "text", "got 3")


async def test_a_question_is_answered_by_a_key_and_not_by_a_text(here: Viewed) -> None:
    bash = await here.start()
    await here.send(bash, "read -rn1 -p 'Overwrite? [y/N] ' x; echo; echo said $x")
    await here.wait(bash, "blocked")
    sent = await here.send(bash, "rm -rf x")
    assert sent.outcome == "not_submitted"
    assert "Overwrite? [y/N]" in sent.reason
    await here.ask(asked.SendKey(by=BY, terminal=bash, key="y"))
    await here.wait(bash, "text", "said y")
    await here.wait(bash, "idle")


async def test_nothing_is_sent_where_somebody_types_or_another_program_runs(here: Viewed) -> None:
    bash = await here.start()
    await here.ask(asked.Hold(by="Ada", terminal=bash, connection="c1"))
    here.fleet.type_into(bash, "c2", b"not mine")
    here.fleet.type_into(bash, "c1", b"# typed")
    assert (await here.send(bash, "ls")).reason == "Ada is typing there. Wait until they are done."
    await here.ask(asked.Hold(by="Ada", terminal=bash, connection="c1", take=False))
    await here.wait(bash, "text", "# typed")
    assert "not mine" not in await here.text(bash)
    await here.ask(asked.SendKey(by=BY, terminal=bash, key="ctrl-u"))  # ctrl-c would have the terminal drop what is typed next

    async def is_empty() -> bool:
        return "typed" not in (await here.text(bash)).rstrip().splitlines()[-1]

    await eventually(is_empty)
    await here.wait(bash, "idle")
    seq = (await here.ask(asked.Read(by=BY, terminal=bash))).seq
    assert (await here.send(bash, "cat", seq=seq)).outcome == "submitted"
    assert "Another program" in (await here.send(bash, "rm -rf x", seq=seq)).reason
    assert (await here.send(bash, "x", seq=seq + 10**6)).outcome == "not_submitted"
    assert "one line at a time" in (await here.send(bash, "a\nb")).reason


async def test_a_program_that_does_not_read_is_stale_and_refuses(here: Viewed) -> None:
    bash = await here.start()
    await here.send(bash, "sleep 1000")
    while not (await here.card(bash)).stale:
        here.fleet.type_into(bash, "c", b"x" * 60_000)
    assert "does not read" in (await here.send(bash, "ls")).reason
    await here.ask(asked.SendSignal(by=BY, terminal=bash, signal="KILL"))


async def test_a_signal_reaches_the_program_in_the_foreground(here: Viewed) -> None:
    bash = await here.start()
    await here.send(bash, "sh -c 'echo u''p; exec sleep 1000'")
    await here.wait(bash, "text", "up")  # a command is proven before it is in the foreground
    await here.ask(asked.SendSignal(by=BY, terminal=bash, signal="INT"))
    await here.wait(bash, "idle")
    await here.send(bash, "exit 7")
    await here.wait(bash, "exit")
    card = await here.card(bash)
    assert (card.exit_code, card.ended, card.state.phase) == (7, "It ended with exit code 7.", "dead")
    with pytest.raises(VoxbridgeError, match="not running"):
        await here.ask(asked.SendSignal(by=BY, terminal=bash, signal="INT"))
    assert (await here.send(bash, "ls")).outcome == "not_submitted"


async def test_a_terminal_is_restarted_renamed_resized_and_closed(here: Viewed) -> None:
    bash = await here.start()
    await here.send(bash, "exit")
    await here.wait(bash, "exit")
    again = await here.ask(asked.Restart(by=BY, terminal=bash))
    assert (again.id, again.run, again.ended) == (bash, 2, "")
    await here.wait(bash, "idle")
    assert (await here.ask(asked.Rename(by=BY, terminal=bash, name="Work"))).name == "Work"
    await here.ask(asked.Resize(by=BY, terminal=bash, columns=77, rows=13))
    await here.send(bash, "stty size")
    await here.wait(bash, "text", "13 77")
    with pytest.raises(VoxbridgeError) as refused:
        await here.ask(asked.Restart(by=BY, terminal=bash, resume=True))
    assert refused.value.field == "resume"
    closed = await here.ask(asked.Close(by=BY, terminal=bash))
    assert closed.left == ()
    assert here.cards[bash] is None
    with pytest.raises(VoxbridgeError, match="There is no terminal"):
        await here.ask(asked.Close(by=BY, terminal=bash))


async def test_viewers_get_each_byte_or_a_screen(here: Viewed) -> None:
    bash = await here.start()
    await here.send(bash, "seq 1 300000")
    await here.wait(bash, "idle")
    await eventually(lambda: here.outputs[bash][-1].offset + (0 if here.outputs[bash][-1].keyframe else len(here.outputs[bash][-1].data)))
    outputs = here.outputs[bash]
    assert len(outputs) < 600
    at = 0
    for output in outputs:
        assert output.keyframe or output.offset == at, "a gap that no screen covers"
        at = output.offset if output.keyframe else output.offset + len(output.data)
    attached = await here.ask(asked.Attach(by=BY, terminal=bash))
    assert attached.offset >= at
    assert b"300000" in attached.snapshot


async def test_programs_get_no_secret_of_ours(here: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "VOXBRIDGE_NATS_SEED_FILE", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "EDITOR"):
        monkeypatch.setenv(name, "planted")
    bash = await here.start()
    await here.send(bash, "env | grep planted; env | cut -d= -f1 | grep -iE 'key|token|secret|voxbridge_|nonce'; echo end")
    await here.wait(bash, "idle")
    seen = await here.ask(asked.Read(by=BY, terminal=bash, view="command"))
    # The secret is that with which the program signs what it says to the officer.
    assert seen.text.splitlines() == ["EDITOR=planted", peers.SECRET, "end"]
    await here.send(bash, f"printenv {peers.SECRET}")
    await here.wait(bash, "idle")
    own = (await here.ask(asked.Read(by=BY, terminal=bash, view="command"))).text.strip()
    assert own
    other = await here.start()
    await here.send(other, f"printenv {peers.SECRET}")
    await here.wait(other, "idle")
    assert (await here.ask(asked.Read(by=BY, terminal=other, view="command"))).text.strip() != own, "another one for each"
    row = Definition(id="keyed", title="Keyed", kind="agent", command=("sh", "-c", "env | grep planted"), variables=("GITHUB_TOKEN",))
    await here.ask(asked.Define(by=BY, definition=row))
    keyed = await here.start("keyed")
    await here.wait(keyed, "exit")
    assert "GITHUB_TOKEN=planted" in await here.text(keyed)


async def test_a_missing_program_says_how_to_get_it(here: Viewed) -> None:
    row = Definition(id="nothing", title="Nothing", kind="agent", command=("no-such-program",), get="make it")
    offers = (await here.ask(asked.Define(by=BY, definition=row))).offers
    assert offers[-1].missing == "Nothing is not installed here. Get it: make it"
    with pytest.raises(VoxbridgeError, match="make it"):
        await here.start("nothing")
    with pytest.raises(VoxbridgeError, match="built in"):
        await here.ask(asked.Define(by=BY, definition=Definition(id="bash", title="x", kind="shell", command=("x",))))
    assert len((await here.ask(asked.Undefine(by=BY, definition="nothing"))).offers) == len(definitions.BUILT_IN)
    with pytest.raises(VoxbridgeError, match="There are bash, zsh"):
        await here.start("nothing")
    with pytest.raises(VoxbridgeError) as refused:
        await here.start(directory="/no/such/folder")
    assert refused.value.field == "directory"


async def test_a_host_has_a_bound(here: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "LIMIT", 2)
    await here.start("sh")
    await here.start("sh")
    with pytest.raises(VoxbridgeError) as refused:
        await here.start("sh")
    assert refused.value.limit == 2
    names = [one.name for one in (await here.ask(asked.ListTerminals(by=BY))).terminals]
    assert names == ["Shell", "Shell 2"]


async def test_a_successor_has_the_same_screens(folder: Path) -> None:
    async with fleet(folder) as first:
        bash = await first.start(name="Work")
        other = await first.start("sh")
        await first.ask(asked.Activate(by=BY, terminal=other))
        await first.send(bash, "echo before; sleep 1; echo after")
        before = await first.card(bash)
    async with fleet(folder) as second:
        await second.wait(bash, "text", "after")
        await second.wait(bash, "idle")
        after = await second.card(bash)
        assert (after.name, after.pid, after.run, after.started) == ("Work", before.pid, before.run, before.started)
        assert [one.active for one in (await second.ask(asked.ListTerminals(by=BY))).terminals] == [False, True]
        seen = await second.ask(asked.Read(by=BY, terminal=bash, view="command"))
        assert (seen.text, seen.exit_code) == ("before\nafter", 0)


async def test_an_end_while_no_service_was_there_is_known_afterwards(folder: Path) -> None:
    async with fleet(folder) as first:
        bash = await first.start()
        await first.send(bash, "sleep 0.3; echo last words; exit 5")
    client = HolderClient(folder, lambda *_: None, lambda: None)
    await client.connect()

    async def is_over() -> bool:
        return any(one["code"] == 5 for one in (await client.ask("hello")).body["terminals"])

    await eventually(is_over)
    client.close()
    async with fleet(folder) as second:
        assert (await second.card(bash)).exit_code == 5
        assert "last words" in await second.text(bash)


async def test_with_the_holder_its_programs_end_and_are_restarted(folder: Path) -> None:
    async with fleet(folder) as here:
        bash = await here.start()
        await here.send(bash, "echo precious")
        await here.wait(bash, "idle")
        pid = (await here.card(bash)).pid
        assert pid is not None
        client = HolderClient(folder, lambda *_: None, lambda: None)
        os.kill((await client.connect()).pid, signal.SIGKILL)
        client.close()
        await here.wait(bash, "exit")
        card = await here.card(bash)
        assert card.ended == fleets.LOST
        assert "precious" in await here.text(bash)
        await eventually(lambda: not Path(f"/proc/{pid}").exists())
        assert (await here.ask(asked.Restart(by=BY, terminal=bash))).run == 2
        await here.wait(bash, "idle")
        assert here.fleet.connected


async def test_a_holder_that_dies_before_it_answers_is_followed_by_another(folder: Path) -> None:
    path = folder / SOCKET

    async def dies(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dying.close()
        path.unlink()
        writer.close()

    dying = await asyncio.start_unix_server(dies, path)
    client = HolderClient(folder, lambda *_: None, lambda: None)
    hello = await client.connect()
    assert hello.pid != os.getpid()
    assert hello.terminals == ()
    client.close()


async def test_a_record_that_cannot_be_read_is_left_alone(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "broken.terminal").write_bytes(b"{")
    async with fleet(folder) as here:
        assert (await here.ask(asked.ListTerminals(by=BY))).terminals == ()
    assert "broken.terminal" in caplog.text
    assert (folder / "broken.terminal").exists()
