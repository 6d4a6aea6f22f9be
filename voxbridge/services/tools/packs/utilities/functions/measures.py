"""Times, units of measure and colours."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from msgspec import Meta

from voxbridge.services.tools import zones
from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.utilities import colours, times, units
from voxbridge.services.tools.registry import function, worker
from voxbridge.shared import spoken_dates

Zone = Annotated[str, Meta(min_length=1, max_length=60)]
Color = Annotated[str, Meta(min_length=1, max_length=colours.COLOUR_LIMIT)]
Unit = Annotated[str, Meta(min_length=1, max_length=units.UNIT_LIMIT)]


@function(timeout_s=8, effect="read", listed=False)
async def explain_cron(
    expression: Annotated[str, Meta(min_length=1, max_length=200, examples=["*/5 9-17 * * 1-5"])],
    ctx: Context,
    runs: Annotated[int, Meta(ge=1, le=times.RUNS_LIMIT)] = 5,
    time_zone: Zone = "UTC",
) -> dict[str, Any]:
    """Explain a cron expression, and when it runs next.

    Args:
        expression: The five fields, or a name such as @daily.
        runs: How many of its next times.
        time_zone: The zone it runs in.

    Examples:
        what does this cron expression mean
        explain star slash five in cron
        when does this cron job run next
        read the schedule of my crontab line
        how often does that job start
        next runs of the nightly cron
        when will this crontab entry start
        tell me what this cron line does
        how is star slash fifteen read in cron
    """
    return await ctx.in_child(work_out_cron, expression=expression, runs=runs, time_zone=time_zone, now=ctx.now)


@worker(timeout_s=5)
def work_out_cron(expression: str, runs: int, time_zone: str, now: int) -> dict[str, Any]:
    """Work out the times of a cron expression, which may have none in many years."""
    return times.cron(expression, runs, time_zone, now=datetime.fromtimestamp(now / 1_000_000, UTC))


@function(timeout_s=5, effect="read")
async def convert_time_zone(
    time: Annotated[str, Meta(max_length=40, examples=["3:30 pm", "now"])],
    from_zone: Zone,
    to_zone: Zone,
    ctx: Context,
    date: Annotated[str, Meta(max_length=spoken_dates.SAID_LIMIT, examples=["2026-11-30"])] = "",
) -> dict[str, Any]:
    """Convert a time of day from one time zone into another.

    Args:
        time: The time there, or now.
        from_zone: A zone, a large city or an offset; here for the user's own.
        to_zone: The zone wanted.
        date: The day there, such as 2026-11-30, tomorrow or Friday; today by default.

    Examples:
        what is three pm in London in Tokyo time
        convert nine in the morning Berlin time to New York
        if it is noon in Sydney what time is it in Paris
        my meeting is at four eastern when is that in Lisbon
        half past ten Pacific in central European time
        translate seven in the evening UTC into Delhi time
        when it's midnight in Chicago what's the hour in Madrid
        when it's five pm in Rome how late is it in Seattle
        ten o'clock in Boston is what in Vienna
        what's noon Tokyo time in London
        at nine here in Madrid what time do they have in Lima
        tell me two pm Paris time in Mumbai
        what is the time difference between Madrid and Boston
        how many hours is Perth ahead of Cape Town
        if it is 9 am in Boston what time is it in Madrid
        what time is 10 am Vienna time in Delhi
        what is 7:15 am in Miami in Los Angeles
        4 pm Chicago in Lisbon
        it is eight in the evening in Buenos Aires what time is it in Cape Town
    """
    source, target = (ctx.time_zone if zones.is_here(zone) else zone for zone in (from_zone, to_zone))
    return times.converted(time, source, target, date, now=datetime.fromtimestamp(ctx.now / 1_000_000, UTC))


@function(timeout_s=8, effect="read", isolated=True)
def convert_units(amount: float, from_unit: Unit, to_unit: Unit) -> dict[str, Any]:
    """Convert an amount from one unit of measure into another.

    Args:
        amount: How much.
        from_unit: The unit it has.
        to_unit: The unit wanted.

    Examples:
        how many kilometres are five miles
        convert ten pounds to kilos
        what is seventy fahrenheit in celsius
        how many millilitres in two cups
        turn six feet into centimetres
        how much is a gallon in litres
        a hundred kilometres an hour in miles per hour
        square feet of fifty square metres
        how heavy is 150 pounds in kilos
        change 20 inches to centimetres
        what are three miles in metres
        how many grams is half a pound
        five litres are how many gallons
        one gigabyte in megabytes
        how many inches are in a yard
        how many hours are 90 minutes
        convert two weeks to days
        forty seconds in minutes
        turn a hundred minutes into hours
        how fast is ninety kilometres an hour in knots
        change 300 seconds to minutes
        one kilowatt hour in joules
    """
    return units.converted(amount, from_unit, to_unit)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def describe_color(color: Color) -> dict[str, Any]:
    """Convert a colour between hex, RGB, HSL and its name.

    Args:
        color: Such as #ff8800, rgb(255, 136, 0), hsl(32, 100%, 50%) or orange.

    Examples:
        what colour is this hex code
        convert the colour to RGB
        give me tomato as hex
        HSL of this shade please
        what is the name of that colour code
        which text colour reads best on this background
        what RGB values has navy blue
        which colour is 00 ff 00
        tell me the hex code of salmon
        what shade is this code
        what does beige look like in hex
    """
    return colours.described(color)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def check_contrast(foreground: Color, background: Color) -> dict[str, Any]:
    """Check whether text in one colour can be read on another (WCAG).

    Args:
        foreground: The colour of the text.
        background: The colour behind it.

    Examples:
        is grey text on white readable
        check the contrast of these colours
        does this pass the accessibility guidelines
        contrast ratio of blue on black
        can people read yellow on white
        is my button text dark enough
        is blue on green readable
        would white letters on orange be legible
        how good is the contrast of navy on grey
    """
    return colours.compared(foreground, background)
