"""Language models of an installation: its own, those of vendors, and endpoints that it names, each by the name that an agent gives.

Without a name the installation's own endpoint is asked by OpenAI-compatible HTTP, whichever server it is. Owns which model a request
reaches. Does not own keys (`endpoints`) nor a vendor's wire (a module each). Errors are raised as `VoxbridgeError` with the part's name. A
crash here loses the open requests; whoever made them asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from typing import TypeVar

import httpx  # noqa: F401 - loaded here in full, since one SDK looks at it while another SDK's thread may still be loading it
from openai import AsyncOpenAI

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import endpoints
from voxbridge.shared.language.base import LanguageModel
from voxbridge.shared.language.chat_completions import Catalogue, ChatCompletions, client
from voxbridge.shared.language.conversation import Complete, Message, Written
from voxbridge.shared.language.endpoints import VENDORS, Held, KeyedClient, Keys

T = TypeVar("T")


class _Later:
    """A vendor whose SDK is loaded when it is first needed: loading takes seconds, which a worker that takes over calls does not have."""

    def __init__(self, provider: str, keys: Keys, load: Callable[[Keys], LanguageModel]) -> None:
        self._provider = provider
        self._keys = keys
        self._load = load
        self._loading: asyncio.Future[LanguageModel] | None = None

    async def load(self) -> LanguageModel:
        """Return the vendor, loaded if needed. Raises `PROVIDER_REFUSED`, without loading anything, if there is no key."""
        if self._loading is None:
            await endpoints.key_of(self._provider, self._keys)
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._load, self._keys))
        return await asyncio.shield(self._loading)

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the model, as `LanguageModel.complete` says."""
        async with aclosing((await self.load()).complete(effect, request)) as written:
            async for input in written:
                yield input

    async def close(self) -> None:
        """Close the vendor's connections, if it was loaded."""
        if self._loading is not None:
            await (await self._loading).close()


class LanguageModels:
    """Language models of one installation, shared by all that a process does. `keys` returns a vendor's key, and is called per request, as
    is `catalogue`, which returns the functions of the installation."""

    def __init__(self, config: Config, keys: Keys = endpoints.environment_keys, catalogue: Catalogue = tuple) -> None:
        self._config = config
        own = client(config.llm_url or config.models_base_url, config.llm_key, hook=False)
        self.openai = _keyed("openai", keys, VENDORS["openai"].base_url)
        """Connections to OpenAI."""

        self.named = {name: _keyed(name, keys, url, needs_key=False) for name, url in endpoints.parse(config.endpoints).items()}
        """Connections to the endpoints of `VOXBRIDGE_ENDPOINTS`, by name."""

        self._own = ChatCompletions(always(own), config.llm_model, catalogue=catalogue if self.local else None)
        self._later = {name: _Later(name, keys, load) for name, load in (("anthropic", _claude), ("gemini", _gemini))}
        self._models: dict[str, LanguageModel] = {
            "": self._own,
            endpoints.LOCAL: self._own,
            "openai": ChatCompletions(self.openai.use, VENDORS["openai"].llm, vendor=True),
            **self._later,
            **{name: ChatCompletions(one.use, "") for name, one in self.named.items()},
        }
        self._closing = (
            *(own.close, self.openai.close),
            *(one.close for one in self.named.values()),
            *(one.close for one in self._later.values()),
        )

    @property
    def local(self) -> bool:
        """True if the language model is this installation's own: keeping a vendor's model warm would cost money and change nothing."""
        return not self._config.llm_url

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(*(close() for close in self._closing))

    async def prepare(self) -> None:
        """Load the SDKs of the vendors that have keys, so that the first request to them need not wait."""
        for later in self._later.values():
            with suppress(VoxbridgeError):
                await later.load()

    async def warm(
        self,
        model: str,
        instructions: str,
        functions: Sequence[Function],
        *,
        shared: bool = True,
        said: Sequence[Message] = (),
        asked: bool = False,
    ) -> None:
        """Have the language model read what requests of a session begin with, so that the next answer need not wait. `shared` is as in
        `Complete`; `said` is the conversation so far, and with `asked` ends with a request that may be made in a moment."""
        await self._own.warm(model, instructions, functions, shared=shared, said=said, asked=asked)

    async def complete(self, effect: int, request: Complete) -> AsyncGenerator[Written, None]:
        """Run the language model that the request names; yield what it writes as it comes, `Completed` last."""
        where = one_of(self._models, request.provider, "language")
        if request.provider and request.provider not in VENDORS and where is not self._own:
            named_model(request.model, request.provider)
        async with aclosing(where.complete(effect, request)) as written:
            async for input in written:
                yield input


def _claude(keys: Keys) -> LanguageModel:
    from voxbridge.shared.language.anthropic import Claude  # imported here for the reason that `_Later` gives

    return Claude(keys)


def _gemini(keys: Keys) -> LanguageModel:
    from voxbridge.shared.language.gemini import Gemini  # imported here for the reason that `_Later` gives

    return Gemini(keys)


def always(client: AsyncOpenAI) -> Callable[[], AbstractAsyncContextManager[Held[AsyncOpenAI]]]:
    """Return a use of one client that stays open."""
    held = Held(client.api_key if client.api_key != "local" else "", client)

    @asynccontextmanager
    async def use() -> AsyncIterator[Held[AsyncOpenAI]]:
        yield held

    return use


def _keyed(provider: str, keys: Keys, url: str, *, needs_key: bool = True) -> KeyedClient[AsyncOpenAI]:
    return KeyedClient(provider, keys, lambda key: client(url, key), lambda made: made.close(), needs_key=needs_key)


def one_of(known: Mapping[str, T], provider: str, part: str) -> T:
    """Return what is known by a provider's name. Raises `INVALID_ARGUMENT` for a name that nobody has."""
    if provider not in known:
        names = ", ".join(sorted(filter(None, known)))
        message = f"No {part} model of {provider!r:.60} can be asked; there are {names}."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="provider", limit=names)
    return known[provider]


def named_model(model: str, provider: str) -> str:
    """Return the name of a model. Raises `INVALID_ARGUMENT` where it is empty."""
    if not model:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"Name a model of {provider}: it has no default.", field="model")
    return model
