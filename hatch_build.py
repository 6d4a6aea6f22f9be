"""Build hook of the wheel: puts the browser bundles into the package, from which the gateway serves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCRIPTS: Final = ("client", "react", "page", "ui", "socket", "capture", "playback")
BUNDLES: Final = {
    **{f"client/dist/{name}.js{more}": f"voxbridge/web/client/{name}.js{more}" for name in SCRIPTS for more in ("", ".map")},
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
