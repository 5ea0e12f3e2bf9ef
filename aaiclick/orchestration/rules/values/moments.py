"""Exact encoding of datetimes and times as text, with their zone and fold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta, timezone
from types import MappingProxyType
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aaiclick.orchestration.rules.validation import is_storable

Moment = TypeVar("Moment", datetime, time)

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class UnknownZone(ValueError):
    """The time zone cannot be encoded, or is not known on this machine."""


def write_moment(value: datetime | time) -> tuple[str, dict[str, object]]:
    """Return the ISO text, and the facts that it cannot hold.

    If the zone is among the facts, the text is the local time without an offset. Offsets with microseconds are facts
    too: `fromisoformat` reads an offset of a few microseconds as UTC.
    """
    facts = _zone_facts(value.tzinfo)
    text = (value.replace(tzinfo=None) if facts else value).isoformat()
    if value.fold:
        facts["fold"] = 1
    return text, facts


def _zone_facts(zone: object) -> dict[str, object]:
    if zone is None:
        return {}
    if type(zone) is ZoneInfo and zone.key:
        return {"zone": zone.key}
    if type(zone) is not timezone:
        raise UnknownZone(f"its time zone is a {type(zone).__name__}")
    offset, name = zone.utcoffset(None), zone.tzname(None)
    if not is_storable(name):
        raise UnknownZone("the name of its time zone has NUL or a lone surrogate")
    own_name = [name] if name != timezone(offset).tzname(None) else []
    if not own_name and not offset.microseconds:
        return {}
    return {"offset": [offset.days, offset.seconds, offset.microseconds], "name": own_name}


def read_datetime(text: str, facts: Mapping[str, Any] = _NOTHING) -> datetime:
    """Return the datetime of a text and facts from `write_moment`."""
    return _with_facts(datetime.fromisoformat(text), facts)


def read_time(text: str, facts: Mapping[str, Any] = _NOTHING) -> time:
    """Return the time of a text and facts from `write_moment`."""
    return _with_facts(time.fromisoformat(text), facts)


def _with_facts(value: Moment, facts: Mapping[str, Any]) -> Moment:
    if "zone" in facts:
        value = value.replace(tzinfo=_zone(facts["zone"]))
    elif "offset" in facts:
        value = value.replace(tzinfo=timezone(timedelta(*facts["offset"]), *facts["name"]))
    return value.replace(fold=facts.get("fold", 0))


def _zone(key: str) -> ZoneInfo:
    try:
        return ZoneInfo(key)
    except ZoneInfoNotFoundError as error:
        raise UnknownZone(f"the time zone {key} is unknown here") from error
