"""Structures that are read before threads decode them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from voxbridge.shared.structures import read_all

ROOT: Final = Path(__file__).parents[2]
THREADS: Final = """
import sys, threading, types
import msgspec
from voxbridge.shared.structures import read_all
sys.setswitchinterval(1e-6)
FIELDS = "".join(f"    f{n}: int | None = None\\n" for n in range(12))
CHAIN = "".join(
    f"class S{n}(msgspec.Struct):\\n{FIELDS}" + (f"    next: S{n + 1} | None = None\\n" if n < 9 else "") for n in range(10)
)
for number in range(100):
    module = types.ModuleType(f"chains.m{number}")
    sys.modules[module.__name__] = module
    exec("from __future__ import annotations\\nimport msgspec\\n" + CHAIN, module.__dict__)
    read_all("chains.")
    together = threading.Barrier(4)
    def decode(first=module.S0):
        together.wait()
        assert msgspec.convert({"next": {"f2": 2}}, first).next.f2 == 2
    threads = [threading.Thread(target=decode) for _ in range(4)]
    [one.start() for one in threads], [one.join() for one in threads]
"""


def test_threads_decode_at_once_what_was_read() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, ""), "without `read_all` the process is ended by a signal"


def test_a_service_reads_all_that_it_decodes() -> None:
    program = "import sys, voxbridge.services.tools.__main__; from voxbridge.shared.structures import read_all; print(*read_all())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split("<class ")) - {""} == {
        "'voxbridge.services.tools.runs.outputs.Finished'> ",
        "'voxbridge.services.tools.session.intake.Held'>\n",
    }, "these two are in memory alone"


def test_what_is_not_ours_is_left_alone() -> None:
    assert read_all("nothing.") == []
