"""Start the terminals service: `python -m voxbridge.services.terminals`."""

from voxbridge.services.terminals.service import build
from voxbridge.shared.service.process import main

if __name__ == "__main__":
    main("terminals", build)
