"""`--api`: commands ask a server, and open no database. Those that cannot say so."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from aaiclick.errors import InputError, NotFromAfar

if TYPE_CHECKING:
    from aaiclick.client import AsyncAPIClient

T = TypeVar("T")

FROM_AFAR = frozenset(
    {
        *(
            "audit",
            "doctor",
            "metrics",
            "register-job",
            "run-job",
            "task why",
            "task runs",
            "job disable",
            "job enable",
        ),
        *(f"job {verb}" for verb in ("list", "get", "wait", "cancel", "retry", "stats", "graph", "logs", "tasks")),
        *("job events", "dlq list", "dlq replay", "data list", "data show"),
        *(f"task {verb}" for verb in ("list", "get", "logs", "clear", "retry")),
        *(f"worker {verb}" for verb in ("list", "get", "drain", "stop")),
        *(f"registered-job {verb}" for verb in ("list", "get", "fires", "backfill", "backfills")),
        *(f"node {verb}" for verb in ("list", "get", "cordon", "uncordon", "drain", "remove")),
        *("cache list", "cache clear", "resource list", "resource set", "resource remove"),
        *("registered-job get-backfill", "registered-job cancel-backfill"),
    }
)
"""The commands that work through a server; tests/stories/test_commands_from_afar.py asks each of them both ways."""

_typed: tuple[str | None, str | None] = (None, None)
_client: AsyncAPIClient | None = None


def ask_server(url: str | None, token: str | None) -> None:
    """Take the server that was typed; without one, that of the settings."""
    global _typed, _client
    _typed, _client = (url, token), None


def afar() -> AsyncAPIClient | None:
    """Return the client of the server that is to be asked; None if commands use the database."""
    global _client
    if _client is None:
        from aaiclick.config import settings  # here, to keep start-up light

        url, token = _typed
        if not (url or settings().api_url):
            return None
        from aaiclick.client import AsyncAPIClient  # here, to keep start-up light

        _client = AsyncAPIClient(url, token)
    return _client


async def left(work: Coroutine[Any, Any, T]) -> T:
    """Do this, and leave the server then."""
    try:
        return await work
    finally:
        if _client is not None:
            await _client.aclose()


@asynccontextmanager
async def surroundings() -> AsyncIterator[None]:
    """Keep one connection for all that is asked inside; a client of a server does so by itself."""
    if afar() is not None:
        yield
        return
    from aaiclick.orchestration.context import orch_context  # here, to keep start-up light

    async with orch_context():
        yield


def guarded(path: str, command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command; one that does not work through a server refuses to do so."""
    if path in FROM_AFAR:
        return command

    @wraps(command)
    def only_here(*given: Any, **named: Any) -> Any:
        if afar() is not None:
            refuse(f"aaiclick {path}", "it needs the databases, or acts on this machine")
        return command(*given, **named)

    return only_here


def guarded_alone(noun: str, command: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a noun does without a verb; its verbs are guarded by themselves."""
    only_here = guarded(noun, command)

    @wraps(command)
    def alone(*given: Any, **named: Any) -> Any:
        verb = [each.invoked_subcommand for each in named.values() if hasattr(each, "invoked_subcommand")]
        return (only_here if verb == [None] else command)(*given, **named)

    return alone


def refuse(what: str, cause: str) -> None:
    """Refuse what a server cannot do."""
    hint = "Run it where the databases are, without --api and AAICLICK_API_URL."
    raise NotFromAfar(what=what, cause=cause, hint=hint)


def refuse_offset(offset: int | None) -> None:
    """Refuse to skip: a server gives pages by their beginnings."""
    if offset:
        refuse("--offset", "pages are found by --before, which costs the same on every page")


def check_digits(typed: str) -> str:
    """Return what was typed as an id; raise InputError if it is none."""
    if not re.fullmatch("[0-9]{1,19}", typed):
        raise InputError(field="ID", value=repr(typed[:50]), rule="an id must be a whole number", hint="")
    return typed
