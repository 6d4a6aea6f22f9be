"""Part of the provider suite: behaviour of every provider with functions of the page, see `provider_suite`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.voice.realtime_calls import asks, said
from voxbridge.services.tools.registry import load
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

if TYPE_CHECKING:
    from tests.voice.providers.provider_suite import Provider, Stage

OPEN_PAGE: Final = Function(
    name="open_page", description="Open a page.", parameters={"type": "object", "properties": {}}, kind="browser", timeout_s=20
)
"""A function that the page itself declares, as the gateway writes it into the session's request."""

THEME: Final = load(["voxbridge.services.tools.packs.browser.functions"], timeout_s=30)["switch_theme"].card()
"""A function that the catalogue declares and the page answers."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Scripted reply of a model to its next input. One sentence, without commas."""

    hears: str = ""
    """Transcript of the user's speech."""

    says: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    after: str = ""
    """Words after all `calls` are answered."""

    lasts_ms: int = 300
    holds: bool = False
    """True if it does not reach the end of `says` before the provider is killed or the user interrupts."""


class PageFunctionsSuite:
    """Tests that the suite inherits."""

    async def test_a_function_of_the_page_is_offered_called_and_has_its_real_result(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(calls=(("open_page", {}),), after="The page is open."))
        page = await stage.open(functions=(OPEN_PAGE,))
        await asks(page, "Open the page.")
        called = await page.event(ev.ToolCalled)
        assert provider.offered() == {"get_time", "get_weather", "open_page"}
        assert (called.kind, called.deadline_ms) == ("browser", 20_000)
        await page.says(gateway.BrowserCallAnswered(call_id=called.call_id, name="open_page", result={"title": "Prices-2026"}))
        await page.until(ev.TurnCompleted, reason="completed")
        assert provider.knows().count("Prices-2026") == 1
        assert said(page) == ["The page is open."]

    async def test_what_a_page_refuses_the_model_is_told(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(calls=(("open_page", {}),), after="That did not work."))
        page = await stage.open(functions=(OPEN_PAGE,))
        await asks(page, "Open the page.")
        called = await page.event(ev.ToolCalled)
        refusal = {"success": False, "error": "The page's function failed: no-such-page-77"}
        await page.says(gateway.BrowserCallAnswered(call_id=called.call_id, name="open_page", result=refusal))
        await page.until(ev.TurnCompleted, reason="completed")
        assert provider.knows().count("no-such-page-77") == 1
        assert said(page) == ["That did not work."]

    async def test_a_page_that_does_not_answer_in_its_time_is_not_waited_for(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(calls=(("open_page", {}),), after="The page is silent."))
        page = await stage.open(functions=(msgspec.structs.replace(OPEN_PAGE, timeout_s=1),))
        await asks(page, "Open the page.")
        cancelled = await page.event(ev.ToolCancelled)
        assert cancelled.reason == "timed_out"
        await page.until(ev.TurnCompleted, reason="completed")
        assert "TIMED_OUT" in provider.knows()
        assert said(page) == ["The page is silent."]

    async def test_the_page_answers_although_the_worker_was_replaced_meanwhile(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(calls=(("open_page", {}),)))
        page = await stage.open(functions=(OPEN_PAGE,))
        await asks(page, "Open the page.")
        called = await page.event(ev.ToolCalled)
        await stage.replace_worker()
        if provider.can("connection"):
            await page.until(ev.ProviderConnected, 2)
        provider.script(Reply(says="The page is open."))
        await page.says(gateway.BrowserCallAnswered(call_id=called.call_id, name="open_page", result={"title": "Prices-2026"}))
        await page.until(ev.TurnCompleted, reason="completed")
        assert len(page.told(ev.ToolCalled)) == 1
        assert provider.knows().count("Prices-2026") == 1
        assert provider.offered() == {"get_time", "get_weather", "open_page"}
        assert said(page) == ["The page is open."]

    async def test_a_function_of_the_catalogue_is_answered_by_a_page_that_can(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(calls=(("switch_theme", {"theme": "dark"}),), after="It is dark."))
        page = await stage.open(browser=("switch_theme",))
        await asks(page, "Make it dark.")
        called = await page.event(ev.ToolCalled)
        assert provider.offered() == {"get_time", "get_weather", "switch_theme"}
        assert (called.kind, called.deadline_ms, called.arguments) == ("browser", 5_000, {"theme": "dark"})
        await page.says(
            gateway.BrowserCallAnswered(call_id=called.call_id, name="switch_theme", result={"success": True, "theme": "dark-77"})
        )
        await page.until(ev.TurnCompleted, reason="completed")
        assert provider.knows().count("dark-77") == 1
        assert said(page) == ["It is dark."]

    async def test_without_its_page_a_function_is_answered_at_once(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(calls=(("switch_theme", {"theme": "dark"}),), after="You are not there."))
        page = await stage.open(browser=("switch_theme",))
        await page.says(gateway.ClientConnected(gateway="g", connection="c"))
        await page.says(gateway.ClientDisconnected(gateway="g", connection="c", reason="closed", last_seq=0))
        await asks(page, "Make it dark.")
        cancelled = await page.event(ev.ToolCancelled)
        await page.says(gateway.ClientConnected(gateway="g", connection="d", resumed=True))
        await page.until(ev.TurnCompleted, reason="completed")
        assert cancelled.reason == "unavailable"
        assert "UNAVAILABLE" in provider.knows()
