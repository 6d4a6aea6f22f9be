"""A timer that speaks when it ends, even if the executor was replaced meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Alarm
from voxbridge.services.tools.registry import function
from voxbridge.shared.spoken_durations import in_words

DAY_S = 86_400


async def _stop(given: Mapping[str, Any], ctx: Context) -> str:
    await ctx.cancel_task(given["task_id"], given["sid"])
    return "I stopped the timer."


@function(
    kind="async",
    timeout_s=5,
    idempotent=True,
    outlives=True,
    undo=_stop,
)
async def set_timer(
    seconds: Annotated[int, Meta(ge=1, le=DAY_S, examples=[300])], label: Annotated[str, Meta(max_length=80)] = ""
) -> Alarm:
    """Start a timer that speaks up when it ends.

    Args:
        seconds: Seconds until it ends.
        label: What it is for.

    Examples:
        set a timer for ten minutes
        start a three minute egg timer
        wake me in half an hour
        count down ninety seconds
        tell me when an hour has passed
        remind me in twenty minutes to stretch
        put the pasta on for eight minutes
        give me forty five seconds
        ring in five minutes
        let me know when twenty minutes are over
        the rice needs twelve minutes
        an alarm in two hours please
        the cake comes out in forty minutes tell me then
        one minute from now
        count down from ninety seconds
        ten minutes on the clock please
        tell me as soon as twenty minutes have passed
        start counting five minutes for the eggs
        ring in an hour
        I need an alarm in forty minutes
        nap timer twenty five minutes
    """
    name = label.strip().removesuffix("timer").removesuffix("Timer").strip()
    length = in_words(seconds)
    return Alarm(
        after_ms=seconds * 1_000,
        label=name,
        announce=f"Your {name} timer is done." if name else f"Your timer for {length} is done.",
        spoken=f"Timer set for {length}." if not name else f"{name[:1].upper()}{name[1:]} timer set for {length}.",
        result={"seconds": seconds, "label": name},
    )
