"""`python -m services.gateway`: the browsers' door."""

from services.gateway.service import build
from voxbridge.shared.service.process import main

if __name__ == "__main__":
    main("gateway", build)
