"""Waiting for what a request began elsewhere: the address is asked again and again, or calls back."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn, TypedDict
from urllib.parse import quote, urljoin, urlsplit

from aaiclick.config import settings
from aaiclick.errors import ConfigError, InputError, RequestFailed
from aaiclick.executors.http_calls import Response
from aaiclick.orchestration.access.callbacks import new_token
from aaiclick.orchestration.execution.runs.current import find_callback
from aaiclick.orchestration.rules.validation import shorten

EVERY_S = 5.0
EVERY_S_MAX = 86_400.0
MISSES_MAX = 10
"""So many times in a row a question may fail before the task does."""

LOOK_S, LOOK_S_MAX = 0.2, 3.0
"""How often the database is asked whether the callback has come: less and less often."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Progress(TypedDict, total=False):
    """How an answer tells whether the work is done: the JSON field, and its values that mean done or failed."""

    field: str
    done: Sequence[Any]
    failed: Sequence[Any]


class Poll(Progress, total=False):
    """How to ask. `url` may have placeholders for fields of the first answer, `{id}`; without it, Location is asked."""

    url: str
    every_s: float


def check_progress(given: object, field: str, *, polls: bool) -> None:
    """Raise InputError for what is no Poll, or no Progress."""
    known = (Poll if polls else Progress).__annotations__.keys()
    if not isinstance(given, Mapping) or not given.keys() <= known:
        _refuse(field, given, f"it must be a dict with {', '.join(sorted(known))}")
    every_s = given.get("every_s", EVERY_S)
    if type(every_s) not in (int, float) or not 0 < every_s <= EVERY_S_MAX:
        _refuse(f"{field} every_s", every_s, f"it must be a number of seconds up to {EVERY_S_MAX:g}")
    for name in ("done", "failed"):
        if not isinstance(given.get(name, ()), list | tuple):
            _refuse(f"{field} {name}", given[name], "it must be a list of values")
    if ("done" in given or "failed" in given) and not isinstance(given.get("field"), str):
        _refuse(f"{field} field", given.get("field"), "it must be the name of the field that has these values")
    if "url" in given:
        check_template(given["url"], f"{field} url")


# ---------------------------------------------------------------- asking


async def poll_until_done(
    poll: Poll, asked: str, first: Response, ask: Callable[[str], Awaitable[Response]]
) -> Response:
    """Ask until the work is done, and return the last answer. `asked` is the address of the first request.

    Raises ValueError with the state of work that has failed.
    """
    if is_done(poll, first):
        return first
    url = place_to_ask(poll, asked, first)
    misses = 0
    while True:
        await asyncio.sleep(poll.get("every_s", EVERY_S))
        try:
            answer = await ask(url)
        except RequestFailed as error:
            misses += 1
            if misses >= MISSES_MAX or not error.again:
                raise
            continue
        misses = 0
        if is_done(poll, answer):
            return answer


def place_to_ask(poll: Poll, asked: str, first: Response) -> str:
    """Return the address to ask for progress."""
    if "url" in poll:
        return filled(poll["url"], first)
    location = first.headers.get("Location")
    if location is None:
        _refuse("poll", "no url", "the first answer has no Location, so it must have a url")
    return urljoin(asked, location)


def is_done(progress: Progress, answer: Response) -> bool:
    """Return whether the work is done. Raises ValueError if it has failed.

    Without a field, an answer with the status 202 (accepted) says that it goes on.
    """
    if "field" not in progress:
        return answer.status != 202
    state = value_at(read_json(answer.text), progress["field"])
    if state in progress.get("failed", ()):
        raise ValueError(f"{progress['field']} is {shorten(state)}")
    return state in progress.get("done", ())


def value_at(found: Any, path: str) -> Any:
    """Return the value at a dotted path in JSON data; None if there is none."""
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def read_json(text: str) -> Any:
    """Return JSON data; None for text that is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# ---------------------------------------------------------------- being called back


async def expect_callback() -> str:
    """Let this task be called back once, and return the address for it."""
    base = settings().server_url
    if not base:
        rule, hint = (
            "it is not set, and a task is to be called back",
            "Set it to the server's address as others reach it.",
        )
        raise ConfigError(setting="AAICLICK_SERVER_URL", value="", rule=rule, hint=hint)
    token, digest = new_token()
    await find_callback(digest)
    return f"{base}/api/v1/callbacks/{token}"


async def wait_for_callback() -> str:
    """Wait until this task is called back, and return the body."""
    pause_s = LOOK_S
    while (body := await find_callback()) is None:
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.5, LOOK_S_MAX)
    return body


# ---------------------------------------------------------------- placeholders


def check_template(template: object, field: str) -> None:
    """Raise InputError for an address whose placeholders could lead to another host."""
    if not isinstance(template, str) or "{" in urlsplit(template).netloc:
        _refuse(field, template, "it must be an address, with placeholders in its path or query at most")


def has_placeholders(template: str) -> bool:
    return _PLACEHOLDER.search(template) is not None


def filled(template: str, answer: Response) -> str:
    """Return an address with its placeholders replaced by fields of the answer's JSON."""
    found = read_json(answer.text)

    def value(match: re.Match[str]) -> str:
        given = found.get(match[1]) if isinstance(found, Mapping) else None
        if given is None or isinstance(given, bool | list | dict):
            _refuse("url", match[0], "the first answer has no such field, or it is neither text nor number")
        return quote(str(given), safe="")

    return _PLACEHOLDER.sub(value, template)


def _refuse(field: str, value: object, rule: str) -> NoReturn:
    raise InputError(field=field, value=shorten(value), rule=rule, hint="See the guide on executors.")
