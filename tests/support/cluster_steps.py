"""What is done with Objects on the embedded engine as a cluster: see cluster_engine."""

from __future__ import annotations

from typing import Any

from aaiclick.backend import get_ch_url
from aaiclick.data import (
    col,
    create_object,
    create_object_from_value,
    data_context,
    lineage,
    list_versions,
    open_object,
    raw,
    rollback,
)
from aaiclick.data.browsing import list_stored
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.row_parts.parts import number_rows
from aaiclick.data.tables.blobs import read_blob, write_blob
from aaiclick.data.tables.lifetimes import clone, drop
from aaiclick.errors import AaiclickError, Conflict

ORDERS = {"id": [1, 2, 3, 4], "city": ["Rome", "Oslo", None, "Rome"], "price": [1.5, 2.5, 0.0, -0.0]}


async def lives() -> dict[str, Any]:
    """The life of Objects: made, added to, computed with, copied, dropped."""
    found: dict[str, Any] = {}
    async with data_context(oplog=True) as context:
        orders = await create_object_from_value(ORDERS, name="orders")
        found["engines"] = await _engines("p_orders")
        found["added"] = await orders.insert({"id": [5], "city": ["Bern"], "price": [7.0]}, token="once")
        await orders.insert({"id": [5], "city": ["Bern"], "price": [7.0]}, token="once")
        dear = await orders.where(col("price") > 1).materialize(name="dear")
        found["sorted"] = await (await open_object("dear")).order_by("id").data()
        found["inserted"] = await dear.insert(orders.where(col("id") == 1))
        found["count"] = await dear.count()
        ordered = await create_object_from_value([3, 1, 2], order=True)
        found["in order"] = [await ordered.data(), await (ordered + 1).data()]
        found["copied in order"] = await (await ordered.copy()).data()
        added = await ordered.copy()
        await added.insert([0])
        found["added come last"] = await added.data()
        found["versions"] = [[each.operation, each.table] for each in await list_versions("orders")]
        found["opened"] = await (await open_object("orders", version=1)).count()
        found["no versions"] = await _without_versions(orders)
        rows = await number_rows(orders, 2)
        found["numbers"] = sorted(await rows.copy[rows.key].data())
        found["size"] = rows.size_bytes > 0
        found["stored"] = [(each.name, each.rows, bool(each.bytes)) for each in await list_stored()]
        await clone(context.client, {"p_orders": "t_copy"}, job_id=7)
        copied = await context.client.rows("SELECT count(), sum(id) FROM t_copy")
        found["clone"] = [column[0] for column in copied.columns]
        await write_blob(context.client, "t_blob", "a long text", job_id=7)
        found["blob"] = await read_blob(context.client, "t_blob")
        for table in ("t_copy", "t_blob"):
            await drop(context.client, table)
        found["log"] = sorted({each.operation for each in (await lineage(dear)).operations})
        try:
            await create_object_from_value([1], name="orders")
        except AaiclickError as error:
            found["taken"] = str(error)
        try:
            await orders.with_columns(bad=raw("throwIf(id >= 0)")).materialize(name="never")
        except AaiclickError as error:
            found["refused"] = type(error).__name__
        found["deleted"] = await context.delete_object("dear")
        found["objects"] = await context.list_objects()
    found["left"] = await _left()
    return found


async def _without_versions(orders: Any) -> list[str]:
    """What is said to those who would make one."""
    told = []
    for make in (
        lambda: orders.materialize("dear", full_refresh=True),
        lambda: orders.materialize("orders", incremental_by="id"),
        lambda: orders.upsert({"id": [5], "city": ["Bern"], "price": [8.0]}, key="id"),
        lambda: rollback("orders", 1),
    ):
        try:
            await make()
        except Conflict as error:
            told.append(str(error).partition(" (AAI")[0])
    return told


async def _engines(table: str) -> list[list[str]]:
    url = get_ch_url()
    client = await open_client(url)
    try:
        told = await client.rows(
            "SELECT name, engine_full, JSONExtractString(comment, 'shape') FROM system.tables"
            f" WHERE database = currentDatabase() AND endsWith(name, '{table}') ORDER BY name"
        )
        return [list(row) for row in zip(*told.columns, strict=True)]
    finally:
        await close_client(url)


async def _left() -> list[str]:
    url = get_ch_url()
    client = await open_client(url)
    try:
        return sorted((await client.tables.look(client, "name", "1")).columns[0])
    finally:
        await close_client(url)


async def answers() -> list[list[Any]]:
    """What queries give over tables that are read through two shards, and over one table with the same rows.

    The two shards are one table: every row is there twice, and the other table is filled by reading them.
    """
    async with data_context() as context:
        sales = await create_object({"k": "Int64", "v": "Nullable(Int64)"}, name="sales")
        towns = await create_object({"k": "Int64", "town": "String"}, name="towns")
        await context.client.command("INSERT INTO local_p_sales VALUES (1, 10), (2, NULL), (2, 30), (3, 40)")
        await context.client.command("INSERT INTO local_p_towns VALUES (2, 'Oslo'), (3, 'Rome'), (9, 'Bern')")
        for name in ("sales", "towns"):
            query = f"CREATE TABLE p_whole_{name} ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM p_{name}"
            await context.client.command(query)
        whole_sales, whole_towns = await open_object("whole_sales"), await open_object("whole_towns")
        there, wanted = _queries(sales, towns), _queries(whole_sales, whole_towns)
        return [[name, await _asked(there[name]), await _asked(wanted[name])] for name in there]


def _queries(sales: Any, towns: Any) -> dict[str, Any]:
    found = {f"{how} join": sales.join(towns, on="k", how=how) for how in ("inner", "left", "right", "full")}
    found |= {f"{how} join": sales.join(towns, on="k", how=how) for how in ("semi", "anti")}
    return found | {
        "cross join": sales.cross_join(towns),
        "join of totals": sales.group_by("k").agg(n="count").join(towns.group_by("k").agg(m="count"), on="k"),
        "join with oneself": sales.join(sales[["k"]], on="k"),
        "isin": sales.where(col("k").isin(towns["k"])),
        "not isin": sales.where(~col("k").isin(towns.where(col("town") == "Oslo")["k"])),
        "totals": sales.agg(n="count", s=col("v").sum(), u=col("k").nunique(), m=col("v").median()),
        "groups": sales.group_by("k").agg(n="count", v=col("v").max()),
        "having": sales.group_by("k").agg(n="count").where(col("n") > 2),
        "unique": sales.unique(),
        "unique by key": sales[["k"]].unique(),
        "limit": sales.order_by("k", descending=True).limit(3)[["k"]],
        "concat": sales[["k"]].concat(towns[["k"]]),
        "window": sales.with_columns(n=col("v").sum().over("k")),
        "share of the total": sales.with_columns(s=col("k") * 100 / sales["k"].sum()),
    }


async def _asked(query: Any) -> list[str]:
    data = await query.data()
    columns = list(data.values()) if isinstance(data, dict) else [data]
    columns = [column if isinstance(column, list) else [column] for column in columns]
    return sorted(map(repr, zip(*columns, strict=True)))
