"""Plugin of mypy: checks the fields and types that `msgspec.structs.replace` is given, as mypy does for `dataclasses.replace`."""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import FunctionSigContext, Plugin
from mypy.plugins.dataclasses import replace_function_sig_callback
from mypy.types import FunctionLike


class StructsPlugin(Plugin):
    """Gives `replace` the signature of the struct's own fields."""

    def get_function_signature_hook(self, fullname: str) -> Callable[[FunctionSigContext], FunctionLike] | None:
        """Return the hook of `msgspec.structs.replace`."""
        return replace_function_sig_callback if fullname == "msgspec.structs.replace" else None


def plugin(_version: str) -> type[Plugin]:
    """Return the plugin class; mypy calls this."""
    return StructsPlugin
