"""`voxbridge ingest` against a running service."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.knowledge.serving import serving
from tests.pdf import pdf
from voxbridge.cli import cli
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.knowledge import Search


async def run(*arguments: str) -> Result:
    """Run the command in a thread, since its service runs in this one."""
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, ["ingest", *arguments]))


async def test_a_folder_is_taken_once_and_found(nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXBRIDGE_NATS_URL", nats_url)
    folder = tmp_path / "Hand book"
    (folder / "more").mkdir(parents=True)
    (folder / "leave.md").write_text("# Leave\nHolidays are thirty days.\n")
    (folder / "more" / "mower.pdf").write_bytes(pdf("The warranty of the mower lasts seven years."))
    (folder / "more" / "broken.txt").write_bytes(b"\xff\xfe")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    async with serving(replace(Config(), nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path)) as (_, asks):
        first = await run(str(folder))
        assert first.stdout == "hand-book: 2 of 3 documents taken (2 passages), 0 unchanged, 1 left out.\n"
        assert "left out: Hand book/more/broken.txt: broken.txt is not text in UTF-8" in first.stderr
        assert first.exit_code == 1
        found = await asks(Search(account="local", query="how long is the warranty", count=1))
        assert found.passages[0].source == "Hand book/more/mower.pdf"
        again = await run(str(folder / "leave.md"), "--graph", "hand book")
        assert (again.exit_code, again.stdout) == (0, "hand-book: 1 of 1 documents taken (1 passages), 0 unchanged, 0 left out.\n")
        (folder / "more" / "broken.txt").unlink()
        assert (await run(str(folder))).stdout == "hand-book: 0 of 2 documents taken (0 passages), 2 unchanged, 0 left out.\n"
        unnamed = await run(str(folder), "--graph", "!!")
        assert isinstance(unnamed.exception, VoxbridgeError)
        assert (unnamed.exception.code, unnamed.exception.field) == (Code.INVALID_ARGUMENT, "database")
    away = await run(str(folder))
    assert isinstance(away.exception, VoxbridgeError)
    assert "The knowledge service does not answer" in away.exception.message


async def test_a_folder_without_documents_says_what_can_be_read(tmp_path: Path) -> None:
    done = await run(str(tmp_path))
    assert isinstance(done.exception, VoxbridgeError)
    assert (done.exception.code, done.exception.field) == (Code.NOT_FOUND, "path")
    assert ".pdf" in done.exception.message
