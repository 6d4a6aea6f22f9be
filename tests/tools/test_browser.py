"""Functions of the page that come to an executor: there is no page to answer them."""

from __future__ import annotations

from tests.tools.conftest import Caller, Executors
from voxbridge.shared.events.tools import ToolFailed


async def test_a_call_of_a_pages_function_that_has_no_page_is_unavailable(executors: Executors, caller: Caller) -> None:
    async with executors.running("voxbridge.services.tools.packs.browser.functions"):
        await caller.call("navigate_page", path="/sessions")
        failed, _ = await caller.next(ToolFailed)
        assert (failed.error.code, failed.error.message.startswith("navigate_page is answered by")) == ("UNAVAILABLE", True)


async def test_its_arguments_are_checked_all_the_same(executors: Executors, caller: Caller) -> None:
    async with executors.running("voxbridge.services.tools.packs.browser.functions"):
        await caller.call("switch_theme", theme="plaid")
        failed, _ = await caller.next(ToolFailed)
        assert (failed.error.code, "`theme`" in failed.error.message) == ("INVALID_ARGUMENT", True)
