"""Fields that all things have: ids, times and statuses, as JSON has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar, cast

from aaiclick.orchestration.rules.naming.untrusted_entrypoints import shown
from aaiclick.orchestration.rules.validation import check_paging

Facts = TypeVar("Facts", bound=Mapping[str, object])


class Form:
    """What a JSON schema says about a field besides its type. Only pydantic reads it, in the server."""

    def __init__(self, **facts: object) -> None:
        self.facts = facts

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]) -> Any:
        return handler(core_schema) | self.facts


Id = Annotated[str, Form(pattern="^[0-9]{1,19}$", examples=["380467616543174656"])]
"""A string, since programs that read numbers as doubles would change the last digits."""

Time = Annotated[str, Form(format="date-time")]
"""ISO 8601 with the offset, which is Z for UTC."""


def facts_of(kind: type[Facts], thing: object, **known: object) -> Facts:
    """Return the fields of a thing, by the names of its attributes; `known` gives those that it does not have so."""
    names = kind.__annotations__
    return cast(Facts, {name: known[name] if name in known else plain(name, getattr(thing, name)) for name in names})


def plain(name: str, value: Any) -> Any:
    """Return a field as JSON has it."""
    if isinstance(value, str):
        return shown(value) if name == "entrypoint" else str(value)  # a status is a kind of str
    if isinstance(value, int) and is_id(name):
        return str(value)
    return time_text(value) if isinstance(value, datetime) else value


def is_id(name: str) -> bool:
    """Return whether a field of this name is an id."""
    return name == "id" or name.endswith("_id")


def id_text(value: int | None) -> str | None:
    """Return an id as text, or None."""
    return None if value is None else str(value)


def time_text(moment: datetime) -> str:
    """Return a time in ISO form. UTC is Z: in an address, + is a blank."""
    text = moment.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def last_of(found: Sequence[Any], limit: int | None) -> Any:
    """Return the last thing on a full page, behind which there may be another page; else None."""
    return found[-1] if len(found) == check_paging(limit)[0] else None


def next_id(found: Sequence[Any], limit: int | None) -> str | None:
    """Return where the next page begins: the id of the last thing on a full page."""
    last = last_of(found, limit)
    return None if last is None else str(last.id)
