"""Start the knowledge service: `python -m voxbridge.services.knowledge`."""

import os

# Set before numpy is imported: on a busy machine a search waited a quarter of a second for OpenBLAS's other threads, which spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from voxbridge.services.knowledge.service import build
from voxbridge.shared.service.process import main

if __name__ == "__main__":
    main("knowledge", build)
