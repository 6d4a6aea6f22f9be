"""Build hook of the wheel: puts the browser bundles into the package, from which the gateway serves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLES: Final = {
    "client/dist/client.js": "voxbridge/web/client/client.js",
    "client/dist/react.js": "voxbridge/web/client/react.js",
    "client/dist/page.js": "voxbridge/web/client/page.js",
    "client/dist/ui.js": "voxbridge/web/client/ui.js",
    "client/dist/socket.js": "voxbridge/web/client/socket.js",
    "client/dist/capture.js": "voxbridge/web/client/capture.js",
    "client/dist/playback.js": "voxbridge/web/client/playback.js",
    "client/dist/voxbridge.tgz": "voxbridge/web/client/voxbridge.tgz",
    "studio/dist": "voxbridge/web/studio",
}


class Bundles(BuildHookInterface[Any]):
    """Adds the bundles to a wheel; an editable installation uses those of the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the bundles. Raises FileNotFoundError with what to do if they are not built."""
        if self.target_name != "wheel" or version == "editable":
            return
        for built, place in BUNDLES.items():
            if not (Path(self.root) / built).exists():
                raise FileNotFoundError(f"{built} is not built. Run `make setup` before the wheel is built.")
            build_data["force_include"][built] = place
