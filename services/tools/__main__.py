"""Starts the tool executor: `python -m services.tools`."""

from services.tools.service import build
from shared.service import main

if __name__ == "__main__":
    main("tools", build)
