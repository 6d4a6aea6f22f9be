"""Nothing that the product is made of tells its maker what it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LOADS = """
import voxbridge.services.voice.audio.vad
import onnxruntime

try:
    onnxruntime.InferenceSession(b"no model", providers=["CPUExecutionProvider"])
except onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf:
    print("no model")
"""


def test_onnxruntime_tells_nobody_that_a_model_is_loaded(tmp_path: Path) -> None:
    # It is silent within CI as well. What tells of it is the id of the machine that it keeps in the folder for temporary files.
    env = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")} | {"TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LOADS], env=env, check=True, capture_output=True, text=True)
    assert (done.stdout, list(tmp_path.iterdir())) == ("no model\n", [])
