"""The options `cache` and `idempotency_key` of tasks: which results are remembered, under what key and for how long."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import check_key, check_seconds, shorten

LENGTH_MAX = 2000
"""The maximum number of characters of stored options."""


class CacheMode(StrEnum):
    """What the tasks of a job do with the cache."""

    USE = "use"
    REFRESH = "refresh"
    """All bodies run, and their results replace those that are remembered."""
    OFF = "off"
    """All bodies run, and nothing is remembered."""


class KeyFunction(NamedTuple):
    """A function that makes a key of a task's arguments, by its entrypoint."""

    entrypoint: str


Key: TypeAlias = str | KeyFunction | Callable[..., str]
"""A template that the arguments fill (`"{customer}-{day}"`), or a function of the arguments."""


@dataclass(frozen=True)
class Cache:
    """How the results of a task are cached.

    ttl: seconds, or a timedelta, for which a result is used; by default AAICLICK_CACHE_TTL. version: names the state
    of the code; by default a digest of the function's source, which does not see the functions that it calls. key:
    takes the place of the arguments. scope: "all" jobs, or each "job" for itself. refresh: run, and remember the new
    result.
    """

    ttl: float | timedelta | None = None
    version: str | int | None = None
    key: Key | None = None
    scope: Literal["all", "job"] = "all"
    refresh: bool = False

    def __post_init__(self) -> None:
        if self.ttl is not None:
            check_seconds(self.ttl_s, "cache.ttl", "Leave it out to keep results for AAICLICK_CACHE_TTL.")
        if self.version is not None and type(self.version) not in (str, int):
            _refuse("cache.version", self.version, "a text or a whole number")
        if self.scope not in ("all", "job"):
            _refuse("cache.scope", self.scope, '"all" or "job"')
        if type(self.refresh) is not bool:
            _refuse("cache.refresh", self.refresh, "True or False")
        _check_form("cache.key", self.key)

    @property
    def ttl_s(self) -> float | None:
        return self.ttl.total_seconds() if isinstance(self.ttl, timedelta) else self.ttl


CacheOption: TypeAlias = bool | float | timedelta | Cache | None
"""What `cache=` takes: True, a time to live, or a Cache; False and None are no cache."""


def cache_of(option: CacheOption) -> Cache | None:
    """Return the policy that an option stands for; None for no cache."""
    if option is None or isinstance(option, bool):
        return Cache() if option else None
    if isinstance(option, Cache):
        return option
    if type(option) in (int, float) or isinstance(option, timedelta):
        return Cache(ttl=option)
    _refuse("cache", option, "True, False, a number of seconds, a timedelta or a Cache")


@dataclass(frozen=True)
class Remembering:
    """Both options of a task. At most one of them is set."""

    cache: Cache | None = None
    idempotency_key: Key | None = None

    def __post_init__(self) -> None:
        _check_form("idempotency_key", self.idempotency_key)
        if self.cache is not None and self.idempotency_key is not None:
            hint = "An idempotency key remembers the result already; for a time to live, use Cache(key=…, ttl=…)."
            raise InputError(field="cache", value="and idempotency_key", rule="one of them is given", hint=hint)

    def to_json(self) -> str:
        """Return both options as JSON, to be stored with the task."""
        said: dict[str, Any] = {}
        if self.cache is not None:
            own = {field.name: getattr(self.cache, field.name) for field in fields(Cache)}
            said["cache"] = {name: _plain(value) for name, value in own.items() if value != getattr(_DEFAULT, name)}
        if self.idempotency_key is not None:
            said["idempotency_key"] = _plain(self.idempotency_key)
        text = json.dumps(said, separators=(",", ":"), ensure_ascii=False)
        if len(text) > LENGTH_MAX:
            rule = f"written as JSON, cache and idempotency_key have at most {LENGTH_MAX} characters"
            _refuse("cache", text, rule)
        return text

    @classmethod
    def from_json(cls, text: str) -> Remembering:
        """Return the options of a text that `to_json` returned."""
        said = json.loads(text)
        cache = said.get("cache")
        if cache is not None:
            cache = Cache(**{**cache, "key": _key_of(cache.get("key"))})
        return cls(cache, _key_of(said.get("idempotency_key")))


def _plain(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if callable(value):
        _refuse("key", value, "a template, or a function given to @task, .options(…) or create_task")
    return {"function": value.entrypoint} if isinstance(value, KeyFunction) else value


def _key_of(stored: Any) -> Key | None:
    return KeyFunction(stored["function"]) if isinstance(stored, dict) else stored


# ---------------------------------------------------------------- keys


def check_template(field: str, key: Key | None, names: Collection[str]) -> None:
    """Raise InputError if a template names what is no parameter of the function; `names` are its parameters."""
    if not isinstance(key, str):
        return
    for name in _names_in(field, key):
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            _refuse(field, key, f"{{{name}}} is no parameter of its function, whose parameters are: {known}")


def key_text(field: str, key: str | Callable[..., str], arguments: Mapping[str, Any]) -> str:
    """Return the key of a call. `key` is a template or a function, `arguments` are those of the call."""
    try:
        text = key.format_map(arguments) if isinstance(key, str) else key(**arguments)
    except LookupError as error:
        _refuse(field, key, f"the call has no {error} to make it of")
    return check_key(text, field)


def _names_in(field: str, template: str) -> list[str]:
    try:
        names = [name for _, name, _, _ in _parser.parse(template) if name is not None]
    except ValueError as error:
        _refuse(field, template, f"it is no template: {error}")
    return [name.partition(".")[0].partition("[")[0] for name in names]


_parser = string.Formatter()


def _check_form(field: str, key: object) -> None:
    if key is None or isinstance(key, KeyFunction) or callable(key):
        return
    if not isinstance(key, str) or not key:
        _refuse(field, key, "a template such as '{customer}-{day}', or a function of the arguments")
    _names_in(field, key)


def _refuse(field: str, value: object, rule: str) -> NoReturn:
    raise InputError(field=field, value=shorten(value), rule=rule, hint="")


_DEFAULT = Cache()
