"""Tasks that take and return Objects, for workers that have no ClickHouse."""

from __future__ import annotations

from aaiclick.data import Object, create_object_from_value


async def gives(count: int) -> Object:
    return await create_object_from_value(list(range(count)))


async def doubles(values: Object) -> Object:
    return await (values * 2)


async def sums(values: Object) -> int:
    return int(sum(await values.data()))
