"""Colours: their notations, and the contrast of two."""

from __future__ import annotations

import colorsys
import re
from typing import Any, Final

from voxbridge.services.tools.packs.utilities.bounds import refused

COLOUR_LIMIT: Final = 40
"""Characters of a colour."""
_HEX: Final = re.compile(r"#?([0-9a-f]{3}|[0-9a-f]{6})")
_NUMBER: Final = r"\s*(-?\d{1,4}(?:\.\d{1,6})?)"
_RGB: Final = re.compile(rf"(?:rgb)?\s*\(?{_NUMBER}(%?)\s*[, ]{_NUMBER}\2\s*[, ]{_NUMBER}\2\s*\)?")
_HSL: Final = re.compile(rf"hsl\s*\(?{_NUMBER}(?:deg)?\s*[, ]{_NUMBER}%?\s*[, ]{_NUMBER}%?\s*\)?")
LEVELS: Final = {"aa": 4.5, "aa_large_text": 3.0, "aaa": 7.0, "aaa_large_text": 4.5}
"""Contrast ratios that WCAG 2 asks for."""

Rgb = tuple[int, int, int]


def read(text: str, field: str = "color") -> Rgb:
    """Return a colour written as `#rgb`, `#rrggbb`, `rgb(…)`, `hsl(…)` or by its CSS name. Raises `INVALID_ARGUMENT`."""
    import webcolors

    wanted = text.strip().lower()
    if found := _HEX.fullmatch(wanted):
        digits = found[1] if len(found[1]) == 6 else "".join(one * 2 for one in found[1])
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
    if found := _RGB.fullmatch(wanted):
        parts = [float(one) * 255 / 100 if found[2] else float(one) for one in (found[1], found[3], found[4])]
        if all(0 <= part <= 255 for part in parts):
            return _whole(*(part / 255 for part in parts))
    elif found := _HSL.fullmatch(wanted):
        hue, saturation, lightness = (float(one) for one in found.groups())
        if 0 <= saturation <= 100 and 0 <= lightness <= 100:
            return _whole(*colorsys.hls_to_rgb(hue % 360 / 360, lightness / 100, saturation / 100))
    else:
        try:
            named = webcolors.name_to_rgb(wanted.replace(" ", ""))
            return int(named.red), int(named.green), int(named.blue)
        except ValueError:
            pass
    message = f"{text[:COLOUR_LIMIT]!r} is not a colour. Write it as #ff8800, rgb(255, 136, 0), hsl(32, 100%, 50%) or a CSS name."
    raise refused(message, field)


def described(text: str) -> dict[str, Any]:
    """Return a colour in all notations, its luminance, and the text colour that reads best on it."""
    import webcolors

    rgb = read(text)
    hue, lightness, saturation = colorsys.rgb_to_hls(*(part / 255 for part in rgb))
    _, saturation_v, value = colorsys.rgb_to_hsv(*(part / 255 for part in rgb))
    try:
        name = webcolors.rgb_to_name(rgb)
    except ValueError:
        name = ""
    best = "black" if contrast(rgb, (0, 0, 0)) >= contrast(rgb, (255, 255, 255)) else "white"
    result = {
        "hex": hex_of(rgb),
        "rgb": list(rgb),
        "hsl": [round(hue * 360) % 360, round(saturation * 100), round(lightness * 100)],
        "hsv": [round(hue * 360) % 360, round(saturation_v * 100), round(value * 100)],
        "name": name,
        "luminance": round(luminance(rgb), 4),
        "text_on_it": best,
    }
    said = f"red {rgb[0]}, green {rgb[1]}, blue {rgb[2]}"
    return result | {"spoken": f"That is {f'{name}, ' if name else ''}{said}; {best} text reads best on it."}


def compared(foreground: str, background: str) -> dict[str, Any]:
    """Return the contrast ratio of two colours, and which of WCAG's levels it reaches."""
    front, back = read(foreground, "foreground"), read(background, "background")
    ratio = contrast(front, back)
    levels = {level: ratio >= least for level, least in LEVELS.items()}
    verdict = (
        "triple A" if levels["aaa"] else "double A" if levels["aa"] else "double A for large text only" if levels["aa_large_text"] else ""
    )
    # A ratio just below a limit must not be rounded up to it.
    shown = int(ratio * 100) / 100
    said = f"The contrast is {shown:g} to 1, " + (f"which passes {verdict}." if verdict else "which is too low for text.")
    return {"ratio": shown, **levels, "foreground": hex_of(front), "background": hex_of(back), "spoken": said}


def contrast(one: Rgb, other: Rgb) -> float:
    """Return the contrast ratio of WCAG 2, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(rgb: Rgb) -> float:
    """Return the relative luminance of WCAG 2, from 0 to 1."""
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (one / 255 for one in rgb))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def hex_of(rgb: Rgb) -> str:
    """Return a colour as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def _whole(*parts: float) -> Rgb:
    red, green, blue = (round(part * 255) for part in parts)
    return red, green, blue
