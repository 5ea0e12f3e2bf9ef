"""Checks of entrypoints and arguments that requests from outside name.

Finding a function imports the user's module, so it is done in a child process that can be killed
(`submitting/inspection`), never in the server's process.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from aaiclick import errors
from aaiclick.backend import is_local
from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.config import settings
from aaiclick.errors import EntrypointError
from aaiclick.module_path import our_python, searched_places
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, is_name, with_executor
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import (
    arguments_from_outside,
    check_asked,
    marked,
    plain,
    standing_in,
)
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.rules.values.annotations import converted, hint_of
from aaiclick.orchestration.rules.values.encoding import decode_kwargs, encode_kwargs
from aaiclick.orchestration.submitting.entrypoints import ENTRYPOINT_LENGTH_MAX
from aaiclick.orchestration.submitting.inspection import StandIn

LOOK_S_MAX = 20.0
"""How long the child may take, which includes importing the user's module. Then it is killed."""

KNOWN_S = 10.0
"""How long the answer about an entrypoint is reused."""

KNOWN_MAX = 1000
ANSWER_BYTES_MAX = 1_000_000
CHILDREN_MAX = 2

_INSPECTION = "aaiclick.orchestration.submitting.inspection"
_known: dict[str, tuple[float, dict[str, Any]]] = {}
_looks: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Task[dict[str, Any]]] = {}
"""Inspections in progress, by event loop and entrypoint."""


@asynccontextmanager
async def from_outside(entrypoint: str) -> AsyncIterator[str]:
    """Yield the marked form of an entrypoint; raise EntrypointError if it must not be run from outside.

    Inside the block, a stand-in is found under the marked name, so that nothing is imported here. The mark makes the
    child and the worker check the function that they find: by its own name, not by the name it was reached by.
    """
    check_asked(entrypoint, settings().entrypoint_prefixes)
    name = marked(entrypoint)
    found = await look_at(name)
    name = with_executor((found or {}).get("executor", PYTHON), name)
    with standing_in({name: StandIn(found or _UNKNOWN)}):
        yield name


@asynccontextmanager
async def already_trusted(entrypoint: str, *, with_arguments: bool = False) -> AsyncIterator[None]:
    """Let a stored entrypoint be resolved inside the block without importing its module here.

    `with_arguments` says that arguments came from outside: functions that they name are checked where the job runs.
    """
    found = await look_at(entrypoint)
    with standing_in({entrypoint: StandIn(found or _UNKNOWN)}), arguments_from_outside(with_arguments):
        yield


async def converted_outside(entrypoint: str, kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return arguments from outside, given as JSON, converted to the types of the function's annotations.

    Raise an error that names the argument if one cannot be converted. Arguments annotated with plain JSON types are
    converted here, the others in the child, because they need the user's types. If the function is not known here
    (`look_at` gives None), the arguments are returned unchanged.
    """
    found = await look_at(entrypoint) if kwargs else None
    if found is None:
        return dict(kwargs)
    encode_kwargs(kwargs, bytes_max=settings().value_bytes_max)  # refuses arguments that are too large, first of all
    hints: dict[str, Any] = found.get("hints", {})
    here = {name: hint_of(spec) for name, spec in hints.items() if spec is not None}
    given = converted(here, kwargs)
    there = {name: given[name] for name in given if name in hints and name not in here}
    return given | (await _convert(entrypoint, there) if there else {})


async def _convert(entrypoint: str, kwargs: dict[str, object]) -> dict[str, object]:
    answer = await _ask(entrypoint, json.dumps(kwargs).encode())
    if "kwargs" in answer:
        return decode_kwargs(answer["kwargs"], importing=False)
    kind = getattr(errors, str(answer.get("error", "EntrypointError")))
    raise kind(**answer["refused"])


_UNKNOWN: dict[str, Any] = {
    "kind": "task",
    "name": "function",
    "options": {},
    "parameters": [{"name": "kwargs", "kind": "VAR_KEYWORD", "required": True}],
}
"""The facts of a function whose module is missing here but may exist where workers run: the worker checks it."""


async def look_at(entrypoint: str) -> dict[str, Any] | None:
    """Return the facts about a function (`inspection.look_at`), from the cache or from a child; raise EntrypointError.

    None means that its module is missing here but may exist where the workers run. In local mode that is an error.
    """
    known = _known.get(entrypoint)
    if known is not None and SYSTEM_CLOCK.monotonic() - known[0] < KNOWN_S:
        return known[1]
    found = await _ask_once(entrypoint)
    if "refused" in found:
        if found["missing"] and not is_local():
            return None
        raise EntrypointError(**found["refused"])
    if len(_known) >= KNOWN_MAX:
        _known.clear()
    _known[entrypoint] = (SYSTEM_CLOCK.monotonic(), found)
    return found


async def _ask_once(entrypoint: str) -> dict[str, Any]:
    """Ask the child, or wait for an inspection of the same entrypoint that is in progress.

    A caller that is cancelled does not cancel the inspection for the others.
    """
    key = (asyncio.get_running_loop(), entrypoint)
    if key not in _looks:
        _looks[key] = asyncio.create_task(_ask(entrypoint))
        _looks[key].add_done_callback(lambda look: _end_look(key, look))
    return await asyncio.shield(_looks[key])


def _end_look(key: tuple[asyncio.AbstractEventLoop, str], look: asyncio.Task[dict[str, Any]]) -> None:
    del _looks[key]
    if not look.cancelled():
        look.exception()  # marks it as retrieved: all callers may have been cancelled


async def _ask(entrypoint: str, given: bytes | None = None) -> dict[str, Any]:
    """Start a child that inspects the function, or converts the arguments `given` as JSON, and return its answer."""
    _check_form(entrypoint)
    async with _children():
        child = await asyncio.create_subprocess_exec(
            *our_python(_INSPECTION, *(() if given is None else ("-",)), entrypoint, *searched_places()),
            stdin=asyncio.subprocess.DEVNULL if given is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(LOOK_S_MAX):
                if child.stdin is not None and given is not None:
                    child.stdin.write(given)
                    child.stdin.write_eof()
                answer = await _read(child, ANSWER_BYTES_MAX + 10 * len(given or b""))
        except TimeoutError:
            cause = f"importing it took longer than {LOOK_S_MAX:g} s"
            raise EntrypointError(
                entrypoint=entrypoint, cause=cause, hint="Import less in the module, or import later."
            ) from None
        finally:
            with suppress(ProcessLookupError):  # the whole process group: an import may have started processes
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
    return answer


def _check_form(entrypoint: str) -> None:
    """Refuse a text that is no dotted name: on the child's command line it could be read as an option, or not fit."""
    cause = ""
    if len(entrypoint) > ENTRYPOINT_LENGTH_MAX:
        cause = f"it has {len(entrypoint)} characters, at most {ENTRYPOINT_LENGTH_MAX} are allowed"
    elif not is_name(plain(entrypoint)):
        cause = "it is not a dotted name"
    if cause:
        hint = "Write module.function, such as my_flows.load."
        raise EntrypointError(entrypoint=shorten(entrypoint), cause=cause, hint=hint)


async def _read(child: asyncio.subprocess.Process, bytes_max: int) -> dict[str, Any]:
    """Read one line of JSON from the child's stdout.

    It does not wait for the end of the stream: if the import has forked, the fork keeps the pipe open.
    """
    assert child.stdout is not None
    text = b""
    while b"\n" not in text and len(text) < bytes_max and (more := await child.stdout.read(65536)):
        text += more
    try:
        answer: dict[str, Any] = json.loads(text.partition(b"\n")[0])
    except ValueError:
        cause = "the process that imported it died"
        return {"refused": {"entrypoint": "It", "cause": cause, "hint": ""}, "missing": False}
    return answer


_slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


@asynccontextmanager
async def _children() -> AsyncIterator[None]:
    """Wait until fewer than CHILDREN_MAX children run: an import may use a whole processor."""
    loop = asyncio.get_running_loop()
    for ended in [each for each in _slots if each.is_closed()]:
        del _slots[ended]
    async with _slots.setdefault(loop, asyncio.Semaphore(CHILDREN_MAX)):
        yield
