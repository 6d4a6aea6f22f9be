"""Voxbridge: event-sourced voice agents on a message bus."""

import os

# onnxruntime since 1.29 tells Microsoft of each model that it loads, unless this stands in the environment before it is imported. Set here,
# it holds for every process, whichever library imports onnxruntime.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
