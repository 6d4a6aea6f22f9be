"""`python -m voxbridge.services.voice`: run the voice service until SIGTERM."""

from voxbridge.services.voice.service import build
from voxbridge.shared.service.process import main

if __name__ == "__main__":
    main("voice", build)
