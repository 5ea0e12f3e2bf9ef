"""Jobs that are asked for from outside: what they name is looked at in a child that can be killed, never here."""

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
"""Importing the user's module may take so long."""

KNOWN_S = 10.0
"""So long what was found is not looked at again."""

KNOWN_MAX = 1000
ANSWER_BYTES_MAX = 1_000_000
CHILDREN_MAX = 2

_INSPECTION = "aaiclick.orchestration.submitting.inspection"
_known: dict[str, tuple[float, dict[str, Any]]] = {}
_looks: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Task[dict[str, Any]]] = {}
"""Those that are under way."""


@asynccontextmanager
async def from_outside(entrypoint: str) -> AsyncIterator[str]:
    """Refuse what nobody may run from outside; inside, the entrypoint that is given stands for it.

    It is marked, so that the child and the worker judge what it names: by its own name, wherever it was found.
    """
    check_asked(entrypoint, settings().entrypoint_prefixes)
    name = marked(entrypoint)
    found = await look_at(name)
    with standing_in({name: StandIn(found or _UNKNOWN)}):
        yield name


@asynccontextmanager
async def already_trusted(entrypoint: str, *, with_arguments: bool = False) -> AsyncIterator[None]:
    """For an entrypoint that is stored already: inside, it can be asked for without importing it here.

    With arguments that came from outside, what they name is judged where the job runs.
    """
    found = await look_at(entrypoint)
    with standing_in({entrypoint: StandIn(found or _UNKNOWN)}), arguments_from_outside(with_arguments):
        yield


async def converted_outside(entrypoint: str, kwargs: Mapping[str, object]) -> dict[str, object]:
    """JSON from outside as the function's annotations promise it; refused by name if it cannot be that.

    What is annotated with plain JSON is looked at here, the rest in the child: it takes the user's types.
    """
    found = await look_at(entrypoint) if kwargs else None
    if found is None:
        return dict(kwargs)
    encode_kwargs(kwargs, bytes_max=settings().value_bytes_max)  # what is too large is refused before it is looked at
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
"""Where workers run elsewhere, a module that is missing here may well be there: then the worker checks."""


async def look_at(entrypoint: str) -> dict[str, Any] | None:
    """What the function is; None where its module is missing here and may be with the workers."""
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
    """Whoever asks while somebody looks gets the same answer; who leaves meanwhile does not end it for the others."""
    key = (asyncio.get_running_loop(), entrypoint)
    if key not in _looks:
        _looks[key] = asyncio.create_task(_ask(entrypoint))
        _looks[key].add_done_callback(lambda look: _end_look(key, look))
    return await asyncio.shield(_looks[key])


def _end_look(key: tuple[asyncio.AbstractEventLoop, str], look: asyncio.Task[dict[str, Any]]) -> None:
    del _looks[key]
    if not look.cancelled():
        look.exception()  # all who asked may have left


async def _ask(entrypoint: str, given: bytes | None = None) -> dict[str, Any]:
    """What the child says of the function, or of arguments for it."""
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
            raise EntrypointError(entrypoint=entrypoint, cause=cause, hint="Import less, or later.") from None
        finally:
            with suppress(ProcessLookupError):  # all of its session: an import may have started processes
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
    return answer


def _check_form(entrypoint: str) -> None:
    """Nothing that a command line would read as something else, or could not take."""
    cause = ""
    if len(entrypoint) > ENTRYPOINT_LENGTH_MAX:
        cause = f"it has {len(entrypoint)} characters, allowed are {ENTRYPOINT_LENGTH_MAX}"
    elif not all(part.isidentifier() for part in plain(entrypoint).split(".")):
        cause = "it is not a dotted name"
    if cause:
        hint = "Write module.function, such as my_flows.load."
        raise EntrypointError(entrypoint=shorten(entrypoint), cause=cause, hint=hint)


async def _read(child: asyncio.subprocess.Process, bytes_max: int) -> dict[str, Any]:
    """One line: its end may never come where the import has forked, and the copy holds on to all that is open."""
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
    """So many at once: an import may take all of a processor."""
    loop = asyncio.get_running_loop()
    for ended in [each for each in _slots if each.is_closed()]:
        del _slots[ended]
    async with _slots.setdefault(loop, asyncio.Semaphore(CHILDREN_MAX)):
        yield
