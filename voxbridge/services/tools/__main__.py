"""Start the tool executor: `python -m voxbridge.services.tools`."""

from voxbridge.services.tools.service import build
from voxbridge.shared.service.process import main

if __name__ == "__main__":
    main("tools", build)
