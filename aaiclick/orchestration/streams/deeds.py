"""What an entry of a stream makes: a job of a registered job, or an order to what runs already."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration.access.audit import Change, audited
from aaiclick.orchestration.access.untrusted_entrypoints import already_trusted, converted_outside, look_at
from aaiclick.orchestration.jobs import cancel_job, get_job
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.registered_jobs import disable_job, enable_job, get_registered_job, run_job_from_json
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import plain
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.rules.validation import check_id, shorten
from aaiclick.orchestration.streams.entries import Entry
from aaiclick.orchestration.workers import drain_worker

WHOLE = "payload"
"""The parameter that takes a payload whole, instead of each member by its name."""

SENDER = Token(0, "redis", Role.OPERATOR, datetime.fromtimestamp(0, UTC), None, None, None)
"""Who is named in the audit: whoever may write to the streams."""


async def submit_entry(entry: Entry) -> None:
    """Submit the job that an entry asks for; if its `job_id` was submitted before with the same content, do nothing.

    Raise NotFound if no registered job is called so, and the errors of submissions.
    """
    async with audited(SENDER, "run", f"registered job {entry.type}: {entry.job_id}") as change:
        found = await get_registered_job(entry.type)
        if found is None:
            raise NotFound(
                what="registered job", field="name", value=entry.type, hint="See: aaiclick registered-job list"
            )
        path = found.entrypoint
        kwargs = bound(entry.payload, await look_at(path))
        async with already_trusted(path, with_arguments=bool(kwargs)):
            given = await converted_outside(path, kwargs)
            job = await run_job_from_json(entry.type, None, given, key=entry.job_id)
        change.target = f"job {job.id}: {plain(path)}"


def bound(payload: Any, facts: Mapping[str, Any] | None) -> dict[str, object]:
    """Return the arguments: the payload whole for a parameter called so, else its members by their names."""
    names = {each["name"] for each in (facts or {}).get("parameters", ())}
    if WHOLE in names and not (isinstance(payload, dict) and WHOLE in payload):
        return {WHOLE: payload}
    if not isinstance(payload, dict):
        rule = "it must be an object, as the job has no parameter called payload"
        raise InputError(field="payload", value=shorten(payload), rule=rule, hint='Write {"name": value, …}.')
    return dict(payload)


# ---------------------------------------------------------------- orders


async def obey_entry(entry: Entry) -> None:
    """Carry out an order. Each may come twice without harm; raise InputError for one that there is not."""
    known = ORDERS.get(entry.type)
    if known is None:
        hint = f"The orders are {', '.join(sorted(ORDERS))}."
        raise InputError(field="type", value=shorten(entry.type), rule="there is no such order", hint=hint)
    argument, work = known
    if not isinstance(entry.payload, dict) or entry.payload.keys() != {argument}:
        rule = f"the payload of this order is an object with {argument} alone"
        raise InputError(field="payload", value=shorten(entry.payload), rule=rule, hint="")
    value = entry.payload[argument]
    async with audited(SENDER, entry.type, f"{argument} {shorten(value)}") as change:
        await work(value, change)


async def _cancel(value: Any, change: Change) -> None:
    job_id = _id(value)
    if not await cancel_job(job_id):
        if await get_job(job_id) is None:
            raise NotFound(what="job", field="id", value=job_id, hint="")
        change.outcome = "nothing: it had ended already"


async def _drain(value: Any, _: Change) -> None:
    await drain_worker(_id(value))


async def _enable(value: Any, _: Change) -> None:
    await enable_job(value)


async def _disable(value: Any, _: Change) -> None:
    await disable_job(value)


def _id(value: Any) -> int:
    """Return an id, which programs that know no whole numbers of this size write as a text."""
    return check_id(int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value, "id")


ORDERS: dict[str, tuple[str, Callable[[Any, Change], Awaitable[None]]]] = {
    "cancel_job": ("job", _cancel),
    "drain_worker": ("worker", _drain),
    "enable_job": ("name", _enable),
    "disable_job": ("name", _disable),
}
"""Each with the one member of its payload."""
