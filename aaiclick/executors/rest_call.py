"""The executor `rest`: the body of a task is a call of an address, and perhaps the wait for what it began there."""

from __future__ import annotations

import asyncio
import json as json_format
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn, TypedDict, Unpack, get_args
from urllib.parse import urlencode, urlsplit, urlunsplit

from aaiclick.config import settings
from aaiclick.errors import AaiclickError, InputError, NoContext, NotAllowed, RequestFailed, RequestFailedForGood
from aaiclick.executors import completion
from aaiclick.executors.addresses import read_url
from aaiclick.executors.completion import Poll, Progress
from aaiclick.executors.http_calls import METHODS, Request, Response, call, check_header
from aaiclick.executors.making import executor_task
from aaiclick.orchestration.execution.runs.current import find_callback, get_current_run
from aaiclick.orchestration.rules.options import TaskOptions
from aaiclick.orchestration.rules.validation import shorten

ResultOf = Literal["auto", "json", "text", "response", "none"]

RETRY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
REQUEST_S = 30.0
SHOWN_MAX = 300
"""How much of an answer is in an error."""

log = logging.getLogger(__name__)


class RestOptions(TypedDict, total=False):
    """The options of a call; see docs/guides/executors.md."""

    params: Mapping[str, Any] | None
    headers: Mapping[str, Any] | None
    json: Any
    body: Any
    success: Sequence[int] | None
    retry_statuses: Sequence[int]
    request_timeout_s: float
    idempotency_header: str | None
    result: ResultOf
    poll: Poll | None
    callback: bool | Progress
    callback_header: str | None
    cancel_url: str | None


class RestTaskOptions(RestOptions, TaskOptions, total=False):
    """The options of a call, and of its task."""


def rest(method: str, url: Any, **options: Unpack[RestTaskOptions]) -> Any:
    """Make a task whose body calls an address: `rest("POST", "https://example.org/jobs", json={"x": 1})`.

    The values may be other tasks, and those of headers Secrets.
    """
    if unknown := options.keys() - RestTaskOptions.__annotations__.keys():
        _refuse("rest", ", ".join(sorted(unknown)), "there are no such options")
    _check(method, url, options)
    return executor_task(
        "rest",
        f"{method} {urlsplit(url).hostname}"[:200] if isinstance(url, str) else method,
        {"method": method, "url": url, **options},
    )


async def run(
    method: Any,
    url: Any,
    *,
    params: Any = None,
    headers: Any = None,
    json: Any = None,
    body: Any = None,
    success: Any = None,
    retry_statuses: Any = RETRY_STATUSES,
    request_timeout_s: Any = REQUEST_S,
    idempotency_header: Any = "Idempotency-Key",
    result: Any = "auto",
    poll: Any = None,
    callback: Any = False,
    callback_header: Any = "Callback-URL",
    cancel_url: Any = None,
) -> object:
    """Call an address and return what it answers. This is the body of tasks with the executor `rest`.

    Raises RequestFailed if there is no answer, or one that is no success.
    """
    progress = RestOptions(poll=poll, callback=callback, result=result, cancel_url=cancel_url)
    sending = RestOptions(success=success, retry_statuses=retry_statuses, request_timeout_s=request_timeout_s)
    _check(method, url, {**progress, **sending, "params": params, "headers": headers, "json": json, "body": body})
    read_url(url)
    if callback and (said := await find_callback()) is not None:  # what an earlier attempt had asked for
        return _called_back(callback, method, url, said, result)
    given = {str(name): str(value) for name, value in (headers or {}).items()}
    if idempotency_header and (key := _idempotency_key()):
        given.setdefault(idempotency_header, key)
    if callback:
        address = await completion.expect_callback()
        json = _with_address(json, address)
        if callback_header:
            given.setdefault(callback_header, address)
    request = Request(method, _with_params(url, params or {}), given, b"")
    calls = _Calls(_with_body(request, json, body), success, tuple(retry_statuses), request_timeout_s)
    first: Response | None = None
    try:
        answer = first = await calls.send(calls.request)
        if poll is not None:
            answer = await _poll(calls, poll, first)
        if callback:
            return _called_back(callback, method, url, await completion.wait_for_callback(), result)
    except asyncio.CancelledError:
        if cancel_url is not None:
            await _cancel(calls, cancel_url, first)
        raise
    return _result(answer, result)


@dataclass(frozen=True)
class _Calls:
    """The requests of one run."""

    request: Request
    success: Sequence[int] | None
    retry_statuses: tuple[int, ...]
    timeout_s: float

    async def send(self, request: Request) -> Response:
        """Send a request and return a successful answer. Raises RequestFailed."""
        shown = {"method": request.method, "url": _shown(request.url)}
        try:
            answer = await call(request, timeout_s=self.timeout_s, bytes_max=settings().blob_bytes_max)
        except TimeoutError:
            cause = f"there was no answer within {self.timeout_s:g} s"
            raise RequestFailed(**shown, cause=cause, hint="", status=None, again=True) from None
        except NotAllowed as error:
            raise RequestFailedForGood(**shown, cause=str(error), hint="", status=None, again=False) from None
        except OSError as error:
            cause = shorten(error.strerror or str(error), SHOWN_MAX)
            raise RequestFailed(**shown, cause=cause, hint="", status=None, again=True) from error
        sys.stdout.write(f"{request.method} {_shown(request.url)}: {answer.status}\n")  # into the log of the run
        if answer.status in self.success if self.success else 200 <= answer.status < 300:
            return answer
        again = answer.status in self.retry_statuses
        said = f": {shorten(answer.text.strip(), SHOWN_MAX)}" if answer.body else ""
        kind = RequestFailed if again else RequestFailedForGood
        raise kind(**shown, cause=f"status {answer.status}{said}", hint="", status=answer.status, again=again)

    async def ask(self, url: str) -> Response:
        """Ask for progress: with the headers of the request, but only where that was sent."""
        same = urlsplit(url)[:2] == urlsplit(self.request.url)[:2]
        read_url(url)
        return await self.send(Request("GET", url, self.request.headers if same else {}))


async def _poll(calls: _Calls, poll: Poll, first: Response) -> Response:
    try:
        return await completion.poll_until_done(poll, calls.request.url, first, calls.ask)
    except ValueError as error:
        if isinstance(error, AaiclickError):
            raise
        shown = {"method": calls.request.method, "url": _shown(calls.request.url)}
        raise RequestFailedForGood(**shown, cause=str(error), hint="", status=None, again=False) from None


def _called_back(callback: bool | Progress, method: str, url: str, body: str, result: ResultOf) -> object:
    """Return the result of a callback. Raises RequestFailedForGood if it says that the work has failed."""
    found = completion.read_json(body)
    if not isinstance(callback, bool) and "field" in callback:
        state = completion.value_at(found, callback["field"])
        if state in callback.get("failed", ()) or state not in callback.get("done", (state,)):
            cause = f"the callback says that {callback['field']} is {shorten(state)}"
            raise RequestFailedForGood(method=method, url=_shown(url), cause=cause, hint="", status=None, again=False)
    if result == "none":
        return None
    return body if result == "text" or (found is None and body != "null") else found


async def _cancel(calls: _Calls, template: str, first: Response | None) -> None:
    """Tell the other side that the run is stopped; whether it hears it or not, the run is."""
    try:
        if first is None and completion.has_placeholders(template):
            return
        url = template if first is None else completion.filled(template, first)
        read_url(url)
        same = urlsplit(url)[:2] == urlsplit(calls.request.url)[:2]
        limited = replace(calls, timeout_s=min(calls.timeout_s, settings().cancel_grace_s / 4))
        await limited.send(Request("POST", url, calls.request.headers if same else {}))
    except AaiclickError as error:
        log.warning("The other side was not told that this run is stopped: %s", error)


# ---------------------------------------------------------------- what is sent


def _check(method: object, url: object, options: Mapping[str, Any]) -> None:
    """Raise InputError for options that cannot be used, as far as they are known before the task runs."""
    if method not in METHODS:
        _refuse("method", method, f"it must be one of {', '.join(METHODS)}")
    if isinstance(url, str):
        read_url(url)
    if options.get("json") is not None and options.get("body") is not None:
        _refuse("body", "given with json", "one of the two is given")
    if (result := options.get("result", "auto")) not in get_args(ResultOf):
        _refuse("result", result, f"it must be one of {', '.join(get_args(ResultOf))}")
    timeout_s = options.get("request_timeout_s", REQUEST_S)
    if type(timeout_s) not in (int, float) or not 0 < timeout_s <= completion.EVERY_S_MAX:
        _refuse("request_timeout_s", timeout_s, "it must be a number of seconds")
    for field in ("success", "retry_statuses"):
        statuses = options.get(field, ())
        if statuses is None and field == "success":
            continue
        if not (isinstance(statuses, list | tuple) and all(map(_is_status, statuses))):
            _refuse(field, statuses, "it must be a list of statuses from 200 to 599")
    for name, value in (options.get("headers") or {}).items():
        check_header(name, value if isinstance(value, str) else "")
    if (poll := options.get("poll")) is not None:
        completion.check_progress(poll, "poll", polls=True)
    if (callback := options.get("callback", False)) not in (True, False, None):
        completion.check_progress(callback, "callback", polls=False)
    if poll is not None and callback:
        _refuse("poll", "given with callback", "one of the two is given")
    if (cancel_url := options.get("cancel_url")) is not None:
        completion.check_template(cancel_url, "cancel_url")


def _is_status(value: object) -> bool:
    return type(value) is int and 200 <= value <= 599


def _with_params(url: str, params: Mapping[str, Any]) -> str:
    """Return the address with these parameters added to its query; values may be lists."""
    if not params:
        return url
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, urlencode(dict(params), doseq=True))))
    return urlunsplit(parts._replace(query=query))


def _with_body(request: Request, json: object, body: object) -> Request:
    kind, data = "", b""
    if json is not None:
        kind, data = "application/json", json_format.dumps(json, ensure_ascii=False, allow_nan=False).encode()
    elif isinstance(body, bytes):
        kind, data = "application/octet-stream", body
    elif body is not None:
        kind, data = "text/plain; charset=utf-8", str(body).encode()
    named = {name.lower() for name in request.headers}
    headers = request.headers if not kind or "content-type" in named else {**request.headers, "Content-Type": kind}
    return replace(request, headers=headers, body=data)


def _with_address(value: Any, address: str) -> Any:
    """Return JSON data with `{callback_url}` in its texts replaced by the address."""
    if isinstance(value, str):
        return value.replace("{callback_url}", address)
    if isinstance(value, Mapping):
        return {name: _with_address(item, address) for name, item in value.items()}
    return [_with_address(item, address) for item in value] if isinstance(value, list | tuple) else value


def _idempotency_key() -> str:
    try:
        return get_current_run().idempotency_key
    except NoContext:  # called by hand
        return ""


def _shown(url: str) -> str:
    """Return an address without its query, which may hold what nobody should read."""
    return urlunsplit(urlsplit(url)._replace(query="", fragment=""))


def _refuse(field: str, value: object, rule: str) -> NoReturn:
    raise InputError(field=field, value=shorten(value), rule=rule, hint="See the guide on executors.")


# ---------------------------------------------------------------- what comes back


def _result(answer: Response, wanted: ResultOf) -> object:
    kind = answer.headers.get_content_type()
    if wanted == "none" or (wanted == "auto" and not answer.body):
        return None
    if wanted == "json" or (wanted == "auto" and (kind == "application/json" or kind.endswith("+json"))):
        try:
            return json_format.loads(answer.text)
        except (ValueError, RecursionError) as error:
            rule = f"the answer is no JSON: {error}"
            raise InputError(field="result", value=wanted, rule=rule, hint='Choose result="text".') from None
    if wanted == "response":
        return {"status": answer.status, "headers": dict(answer.headers.items()), "body": answer.text}
    return answer.text
