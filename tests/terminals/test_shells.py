"""zsh and fish as Debian packages them: their integrations say when a command begins and ends, and nothing runs that was not submitted."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests import debian
from tests.terminals.fleets import BY, Viewed, fleet, held_folder
from tests.terminals.test_hostile import PASTES
from voxbridge.shared.terminals import questions as asked

pytestmark = pytest.mark.timeout(180)
SHELLS: Final = ("zsh", "fish")
CLEARS: Final = ("ctrl-e", "ctrl-u", "ctrl-c")


def install(folder: Path) -> None:
    """Put both shells into a folder under their names. zsh is the one without modules of its own files, fish needs a library."""
    zsh = debian.unpacked("zsh", "zsh-static") / "bin" / "zsh-static"
    (folder / "zsh").symlink_to(zsh)
    fish = debian.unpacked("fish", "fish", "fish-common", "libpcre2-32-0")
    libraries = next(fish.glob("usr/lib/*/"))
    (folder / "fish").write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {fish}/usr/bin/fish "$@"\n')
    (folder / "fish").chmod(0o755)


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Viewed]:
    programs = tmp_path / "programs"
    programs.mkdir()
    install(programs)
    monkeypatch.setenv("PATH", os.pathsep.join((str(programs), os.environ["PATH"])))
    with held_folder() as folder:
        (folder / ".zshrc").write_text("PS1='mine> '\nprecmd_functions+=(again)\nagain() { [[ -n $NEW ]] && PS1=$NEW; NEW= }\n")
        async with fleet(folder) as here:
            yield here


async def ready(here: Viewed, shell: str, directory: Path) -> str:
    """Start a shell, and return its terminal once it says itself that it waits."""
    terminal = await here.start(shell, directory=str(directory))
    await here.wait(terminal, "idle")
    assert (await here.card(terminal)).state.source == "shell"
    return terminal


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_shell_says_when_a_command_begins_and_ends(here: Viewed, shell: str, tmp_path: Path) -> None:
    terminal = await ready(here, shell, tmp_path)
    sent = await here.send(terminal, "echo forty two; sleep 0.5; false")
    assert (sent.outcome, sent.proof) == ("submitted", "The shell says that a command began.")
    assert (await here.card(terminal)).state.phase == "working"
    await here.wait(terminal, "turn_end")
    assert "forty two" in await here.text(terminal, "command")
    card = await here.card(terminal)
    assert (card.state.phase, card.state.source) == ("done", "shell")
    (tmp_path / "deeper").mkdir()
    await here.send(terminal, "cd deeper")
    await here.wait(terminal, "turn_end")
    assert (await here.card(terminal)).directory == str(tmp_path / "deeper")


async def test_a_prompt_that_the_users_files_make_anew_is_marked_again(here: Viewed, tmp_path: Path) -> None:
    terminal = await ready(here, "zsh", tmp_path)
    assert "mine>" in await here.text(terminal)
    for prompt in ("first", "second"):
        await here.send(terminal, f"NEW={prompt[:2]}'{prompt[2:]}> '")
        await here.wait(terminal, "text", f"{prompt}>")
        sent = await here.send(terminal, f"[[ $PS1 == *'633;B;'* ]] && touch {prompt}")
        assert sent.proof == "The shell says that a command began."
        await here.wait(terminal, "turn_end")
        assert (tmp_path / prompt).exists()


@pytest.mark.parametrize("shell", SHELLS)
async def test_no_program_of_a_shell_is_given_its_nonce(here: Viewed, shell: str, tmp_path: Path) -> None:
    terminal = await ready(here, shell, tmp_path)
    nonce = here.fleet._terminals[terminal].meta.nonce
    await here.send(terminal, "env > all; cat /proc/self/environ >> all; sh -c 'echo $__vx_nonce$VOXBRIDGE_NONCE' >> all")
    await here.wait(terminal, "turn_end")
    text = (tmp_path / "all").read_text()
    assert "HOME=" in text
    assert not [word for word in (nonce, "ZDOTDIR", "VOXBRIDGE_NONCE", "VOXBRIDGE_INTEGRATION") if word in text]


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_text_runs_nothing_that_is_not_submitted(here: Viewed, shell: str, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    terminal = await ready(here, shell, tmp_path)
    for paste in PASTES:
        sent = await here.send(terminal, paste.format(trap=trap), submit=False)
        assert sent.outcome in ("typed", "not_submitted")
        for key in CLEARS:
            await here.ask(asked.SendKey(by=BY, terminal=terminal, key=key))
    await here.send(terminal, "echo still-here")
    await here.wait(terminal, "text", "still-here")
    assert not trap.exists()
