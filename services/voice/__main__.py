"""`python -m services.voice`: run the voice service until SIGTERM."""

from services.voice.service import build
from shared.service import main

if __name__ == "__main__":
    main("voice", build)
