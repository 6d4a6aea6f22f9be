"""The hook that checks commit messages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.commit_subject import LIMIT, refusal

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "message",
    [
        "Add a provider",
        "Process each frame once\n\nTwo workers took the same one.\n",
        "Speed up a takeover",
        "Pass the reason on",
        "Merge branch 'main'",
        "X" + "x" * (LIMIT - 1),
        "Ping the server",
        "voice: seed the draws",
        "# a comment of git\nName the field",
    ],
)
def test_a_short_subject_is_taken(message: str) -> None:
    assert refusal(message) == ""


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("X" + "x" * LIMIT, "73 characters, and 72 at most"),
        ("Add a provider\nand another", "empty line"),
    ],
)
def test_another_subject_is_refused_with_the_reason(message: str, why: str) -> None:
    assert why in refusal(message)


@pytest.mark.skipif(shutil.which("git") is None, reason="a machine without git runs no hooks of it")
def test_git_runs_the_hook(tmp_path: Path) -> None:
    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.hooksPath=.githooks")
        return subprocess.run(["git", *identity, *arguments], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=60)

    git("init", "-q")
    for name in ("deploy/commit_subject.py", ".githooks/commit-msg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
        (tmp_path / name).chmod(0o755)
    refused = git("commit", "-q", "--allow-empty", "-m", "Add nothing" + " at all" * 20)
    assert (refused.returncode, "72 at most" in refused.stderr) == (1, True)
    assert git("commit", "-q", "--allow-empty", "-m", "Add nothing").returncode == 0
    assert git("log", "--format=%s").stdout == "Add nothing\n"
