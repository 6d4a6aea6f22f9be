"""`python -m voxbridge.services.gateway`: start the gateway."""

from voxbridge.services.gateway.service import build
from voxbridge.shared.service.process import main

if __name__ == "__main__":
    main("gateway", build)
