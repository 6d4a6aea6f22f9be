"""Start the awareness service: `python -m voxbridge.services.awareness`."""

from voxbridge.services.awareness.service import build
from voxbridge.shared.service.process import main

if __name__ == "__main__":
    main("awareness", build)
