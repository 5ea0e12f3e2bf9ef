"""Resources: capacities of nodes and of the whole installation, and who holds what of them."""

from __future__ import annotations

import re

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.resource_standings import ResourceInfo
from aaiclick.orchestration.rules.resources import ON_NODES, WORLD, check_amount, check_resource
from aaiclick.orchestration.rules.validation import check_name, check_paging, shorten
from aaiclick.orchestration.store.reading.resources import list_units
from aaiclick.orchestration.store.resources.units import remove_capacity, set_capacity

_PLACE = re.compile(r"([0-9]{1,19})\.([0-9]{1,9})\.(.{1,200})")


async def list_resources(
    name: str | None = None, limit: int | None = None, *, node: str | None = None, after: str | None = None
) -> list[ResourceInfo]:
    """Return the units of resources with what is free and who holds the rest; those of the whole installation first.

    `name` leaves only those of this resource, `node` only those of this node; `after` is the `place` of the last one on
    the page before.
    """
    names = [] if name is None else [check_resource(name)]
    home = None if node is None else check_name(node, "node")
    last = None if after is None else _place(after)
    count, _ = check_paging(limit, None)
    async with connected() as database:
        return await database.read(lambda session: list_units(session, names=names, node=home, after=last, limit=count))


async def set_resource(name: str, amount: float) -> ResourceInfo:
    """Make this the capacity of the whole installation; it counts from the next claim on.

    If runs hold more than that, nothing is granted until enough of them have ended. What machines have is said by their
    workers: `worker start --resource`.
    """
    wanted = _of_the_world(name)
    size = check_amount(wanted, amount, "amount")
    async with connected() as database:
        await database.transact(lambda session: set_capacity(session, wanted, size))
        found = await database.read(lambda session: list_units(session, names=[wanted], limit=1))
    if not found or found[0].scope != WORLD:  # it was removed meanwhile
        raise _no_resource(wanted)
    return found[0]


async def remove_resource(name: str) -> None:
    """Forget a capacity of the whole installation. What runs hold of it stays theirs; other tasks wait for it."""
    wanted = _of_the_world(name)
    async with connected() as database:
        if not await database.transact(lambda session: remove_capacity(session, wanted)):
            raise _no_resource(wanted)


def _of_the_world(name: str) -> str:
    checked = check_resource(name)
    if checked in ON_NODES:
        hint = f"Begin the workers of a machine with: aaiclick worker start --resource {checked}=AMOUNT"
        raise InputError(field="resource", value=shorten(name), rule="it is of machines, not of all", hint=hint)
    return checked


def _place(text: str) -> tuple[int, str, int]:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise InputError(field="after", value=shorten(text), rule="it must be the `next` of the page before", hint="")
    return int(found[1]), found[3], int(found[2])


def _no_resource(name: str) -> NotFound:
    return NotFound(what="resource", field="name", value=name, hint="See: aaiclick resource list")
