"""`python -m services.gateway`: the browsers' door."""

from services.gateway.service import build
from shared.service import main

if __name__ == "__main__":
    main("gateway", build)
