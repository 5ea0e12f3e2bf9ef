"""How tables are made, dropped and looked up: in one engine, or on the machines of a cluster.

On a cluster, the rows of a table are in a local table on each shard, whose replicas hold the same rows. Everything is
read and written through a Distributed table, so callers need not know the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.clients.contract import Rows, Settings
from aaiclick.data.sql import quoting
from aaiclick.data.typing.schema import IN_PLACE, ORDER
from aaiclick.errors import ConfigError, DataRefused, InputError
from aaiclick.urls import did_you_mean, shown

if TYPE_CHECKING:
    from aaiclick.data.clients.contract import DataClient

LOCAL = "local_"
"""The prefix of the names of local tables."""

TOKENS = "non_replicated_deduplication_window = 1000"
"""The setting of tables that remember the tokens of their inserts."""

REPLICATED_TOKENS = "replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800"

NAMES_SHOWN = 20


class NewTable(NamedTuple):
    """A table to be made."""

    name: str
    order: str
    """The sorting key, as SQL."""
    comment: str = ""
    columns: str = ""
    """The columns, as SQL; without them, the table has the columns of the query that fills it."""
    names: Sequence[str] = ()
    """The names of these columns."""
    tokens: bool = False
    granule: int = 0
    """The granularity of its index, in rows: the least that is read. 0 is ClickHouse's default."""
    engine: str = "MergeTree"
    partition: str = ""
    """The partition key, as SQL."""


@dataclass(frozen=True)
class Tables:
    """How tables are made in one engine, or in a service whose machines share all tables."""

    engine: str = "MergeTree"
    window: str = TOKENS
    settings: Mapping[str, Any] | None = None
    """Settings that are sent with every statement."""

    @property
    def shares_pieces(self) -> bool:
        """Return whether a table can take over the parts of another without copying their rows."""
        return True

    @property
    def keeps_versions(self) -> bool:
        """Return whether Objects may have versions: only a single machine can rename tables and see all inserts."""
        return self.engine == "MergeTree"

    @property
    def sizes(self) -> str:
        """Return the FROM clause, with a condition, of queries for the sizes and comments of tables."""
        return "system.tables WHERE database = currentDatabase()"

    async def look(self, client: DataClient, what: str, which: str) -> Rows:
        """Return columns of system.tables for the tables that match; on a cluster, for those of all machines."""
        return await client.rows(f"SELECT {what} FROM system.tables WHERE database = currentDatabase() AND {which}")  # noqa: S608 (quoted)

    async def make(self, client: DataClient, new: NewTable, query: str = "", settings: Settings | None = None) -> None:
        """Create a table, with the rows of a query if there is one; a name that is taken is refused."""
        await client.command(self._creation(new, query), settings)

    async def make_as(self, client: DataClient, new: NewTable, query: str, settings: Settings | None = None) -> Rows:
        """Like `make`; return the columns that the table has then."""
        return await client.make(self._creation(new, query), _look(new.name), settings)

    async def make_once(self, client: DataClient, new: NewTable) -> Rows:
        """Create a table unless it exists; return the columns that it has."""
        return await client.make(self._creation(new, if_missing=True), _look(new.name))

    async def add_columns(self, client: DataClient, table: str, added: Mapping[str, str]) -> None:
        """Add to a table those of these columns that it lacks."""
        await client.command(f"ALTER TABLE {quoting.name(table)} {_added(added)}")

    def in_place(self, table: str) -> list[str]:
        """Return statements that make new rows come after existing ones, in an ordered table made from a query."""
        # columns made from a query have no defaults
        return [f"ALTER TABLE {quoting.name(table)} MODIFY COLUMN {IN_PLACE}"]

    async def make_like(self, client: DataClient, source: str, table: str, comment: str) -> None:
        """Create an empty table with the columns of another."""
        await client.command(
            f"CREATE TABLE {quoting.name(table)} AS {quoting.name(source)} COMMENT {quoting.text(comment)}"
        )

    async def copy(self, client: DataClient, source: str, copy: str, comment: str) -> None:
        """Create a table with the columns and rows of another."""
        await client.command(
            f"CREATE TABLE {quoting.name(copy)} CLONE AS {quoting.name(source)} COMMENT {quoting.text(comment)}"
        )

    async def drop(self, client: DataClient, table: str) -> None:
        """Drop a table if it exists."""
        await client.command(f"DROP TABLE IF EXISTS {quoting.name(table)} SYNC")

    def _creation(self, new: NewTable, query: str = "", *, if_missing: bool = False) -> str:
        text = f"CREATE TABLE {'IF NOT EXISTS ' if if_missing else ''}{quoting.name(new.name)} "
        text += f"({new.columns}) " if new.columns else ""
        return f"{text}{self._stored(new)}{_comment(new)}{f' AS {query}' if query else ''}"

    def _stored(self, new: NewTable) -> str:
        granule = f"index_granularity = {new.granule}" if new.granule else ""
        options = ", ".join(filter(None, [self.window if new.tokens else "", granule]))
        engine = self.engine.removesuffix("MergeTree") + new.engine
        partition = f" PARTITION BY {new.partition}" if new.partition else ""
        return f"ENGINE = {engine}{partition} ORDER BY {new.order}{f' SETTINGS {options}' if options else ''}"


@dataclass(frozen=True)
class ClusterTables(Tables):
    """How tables are made on a cluster: a local table on every machine, and a Distributed one for all of them."""

    cluster: str = ""
    database: str = "default"
    on: str = ""
    """The clause that runs a statement on every machine; empty if the database does that itself."""

    @property
    def shares_pieces(self) -> bool:
        return False  # a shard would take over its own parts only, and a replica may not have all of them yet

    @property
    def keeps_versions(self) -> bool:
        return False

    @property
    def sizes(self) -> str:
        which = ", ".join(
            f"sum({each}) AS {each}" for each in ("total_rows", "total_bytes", "total_bytes_uncompressed")
        )
        return (
            f"(SELECT substring(local.name, {len(LOCAL) + 1}) AS name, any(local.comment) AS comment, {which}"  # noqa: S608 (quoted)
            f" FROM cluster({quoting.text(self.cluster)}, system.tables) AS local"
            f" WHERE local.database = {quoting.text(self.database)} AND startsWith(local.name, {quoting.text(LOCAL)})"
            " GROUP BY local.name) WHERE true"
        )

    async def look(self, client: DataClient, what: str, which: str) -> Rows:
        """Machines that cannot be reached are skipped."""
        machines = f"clusterAllReplicas({quoting.text(self.cluster)}, system.tables)"
        text = f"SELECT DISTINCT {what} FROM {machines} WHERE database = {quoting.text(self.database)} AND {which}"  # noqa: S608 (quoted)
        return await client.rows(text, {"skip_unavailable_shards": 1})

    async def make(self, client: DataClient, new: NewTable, query: str = "", settings: Settings | None = None) -> None:
        if not new.columns:
            found = await client.rows(f"DESCRIBE TABLE ({query})")
            pairs = list(zip(*found.columns[:2], strict=True))
            columns = ", ".join(IN_PLACE if name == ORDER else f"{quoting.name(name)} {kind}" for name, kind in pairs)
            new = new._replace(columns=columns, names=[name for name, _ in pairs])
        listed = ", ".join(map(quoting.name, new.names))
        fill = [f"INSERT INTO {quoting.name(new.name)} ({listed}) {query}"] if query else []
        try:
            for statement in self.creations(new):
                await client.command(statement)
            for statement in fill:
                await client.command(statement, settings)
        except DataRefused:
            if await self._is_ours(client, new):
                await self.drop(client, new.name)
            raise

    async def make_as(self, client: DataClient, new: NewTable, query: str, settings: Settings | None = None) -> Rows:
        await self.make(client, new, query, settings)
        return await client.rows(_look(new.name))

    async def make_once(self, client: DataClient, new: NewTable) -> Rows:
        for statement in self.creations(new, if_missing=True):
            await client.command(statement)
        return await client.rows(_look(new.name))

    async def add_columns(self, client: DataClient, table: str, added: Mapping[str, str]) -> None:
        for each in (f"{LOCAL}{table}", table):
            await client.command(f"ALTER TABLE {quoting.name(each)}{self.on} {_added(added)}")

    def in_place(self, table: str) -> list[str]:
        return []  # `make` defines the column so from the start

    async def make_like(self, client: DataClient, source: str, table: str, comment: str) -> None:
        local = f"database = {quoting.text(self.database)} AND name = {quoting.text(LOCAL + source)}"
        found = await client.rows(f"SELECT sorting_key FROM system.tables WHERE {local}")  # noqa: S608 (quoted)
        columns = await client.rows(_look(source))
        order = next(iter(found.columns[0]), "")
        new = NewTable(
            table, f"({order})" if order else "tuple()", comment, f"AS {quoting.name(source)}", columns.columns[0]
        )
        for statement in self.creations(new._replace(tokens=True)):
            await client.command(statement)

    async def copy(self, client: DataClient, source: str, copy: str, comment: str) -> None:
        """Copy the rows themselves: see `shares_pieces`."""
        await self.make_like(client, source, copy, comment)
        await client.command(f"INSERT INTO {quoting.name(copy)} SELECT * FROM {quoting.name(source)}")  # noqa: S608 (quoted)

    async def drop(self, client: DataClient, table: str) -> None:
        """Drop the local tables first: after a failure, the Distributed one is still listed for another attempt."""
        for each in (f"{LOCAL}{table}", table):
            await client.command(f"DROP TABLE IF EXISTS {quoting.name(each)}{self.on} SYNC")

    def creations(self, new: NewTable, *, if_missing: bool = False) -> list[str]:
        """Return the statements that create a table: first the Distributed one, whose name may be taken.

        Equal rows go to the same shard: rows that are sent again with their token reach the shard that knows the token.
        """
        if new.engine != "MergeTree":
            rule = "on a cluster, rows with one key may be on several machines, where none replaces another"
            raise InputError(field="engine", value=new.engine, rule=rule, hint="Use MergeTree, and deduplicate(…).")
        begin = f"CREATE TABLE {'IF NOT EXISTS ' if if_missing else ''}"
        columns = new.columns if new.columns.startswith("AS ") else f"({new.columns})"
        by = ", ".join(quoting.name(name) for name in new.names if name != ORDER)
        where = ", ".join(map(quoting.text, (self.cluster, self.database, LOCAL + new.name)))
        engine = f"ENGINE = Distributed({where}, cityHash64(tuple({by})))"
        return [
            f"{begin}{quoting.name(new.name)}{self.on} {columns} {engine}{_comment(new)}",
            f"{begin}{quoting.name(LOCAL + new.name)}{self.on} {columns} {self._stored(new)}{_comment(new)}",
        ]

    async def _is_ours(self, client: DataClient, new: NewTable) -> bool:
        """Return whether the tables of this name, on all machines that have one, were made by this call."""
        found = await self.look(client, "comment", f"name = {quoting.text(new.name)}")
        return bool(new.comment) and list(found.columns[0]) == [new.comment]


ALONE = Tables()
"""The tables of a single engine."""

SHARED_SETTINGS = {"select_sequential_consistency": 1}

CLUSTER_SETTINGS = {
    "insert_quorum": "auto",  # an insert is done once most replicas have its rows
    "insert_quorum_parallel": 0,
    "insert_quorum_timeout": 60_000,
    "select_sequential_consistency": 1,  # a replica that lacks such rows says so, instead of reading without them
    "distributed_foreground_insert": 1,  # rows are in their shards when the insert is answered
    "distributed_product_mode": "global",  # what a table is compared or joined with is read from all shards
    "distributed_ddl_output_mode": "throw_only_active",  # a machine that is away runs the statement later
    "distributed_ddl_task_timeout": 60,
    "skip_unavailable_shards": 0,
    "max_insert_threads": 1,  # a second thread would conflict with the quorum of the first
    "parallel_distributed_insert_select": 0,  # each shard would sort, group and number its own rows only
    "optimize_distributed_group_by_sharding_key": 0,
}


def find_tables(cluster: str, ask: Callable[[str], Rows]) -> Tables:
    """Return how tables are made on a cluster, as the server that is asked describes it; `ask` blocks.

    Raise ConfigError if the server knows no cluster of this name.
    """
    found = ask(
        "SELECT currentDatabase(), (SELECT engine FROM system.databases WHERE name = currentDatabase()),"
        " (SELECT count() FROM system.table_engines WHERE name = 'SharedMergeTree'),"
        " (SELECT groupUniqArray(cluster) FROM system.clusters)"
    )
    (database, kind, shared, known) = (column[0] for column in found.columns)
    if cluster not in known:
        told = ", ".join(map(shown, sorted(known)[:NAMES_SHOWN])) or "none"
        hint = f"{did_you_mean(cluster, known)} The server knows: {told}.".lstrip()
        rule = "the ClickHouse server knows no cluster of this name"
        raise ConfigError(setting="AAICLICK_CH_CLUSTER", value=shown(cluster), rule=rule, hint=hint)
    if shared:
        return Tables("SharedMergeTree", REPLICATED_TOKENS, SHARED_SETTINGS)
    on = "" if kind == "Replicated" else f" ON CLUSTER {quoting.name(cluster)}"
    return ClusterTables("ReplicatedMergeTree", REPLICATED_TOKENS, CLUSTER_SETTINGS, cluster, database, on)


def _look(table: str) -> str:
    return f"DESCRIBE TABLE {quoting.name(table)}"


def _comment(new: NewTable) -> str:
    return f" COMMENT {quoting.text(new.comment)}" if new.comment else ""


def _added(added: Mapping[str, str]) -> str:
    return ", ".join(f"ADD COLUMN IF NOT EXISTS {quoting.name(name)} {kind}" for name, kind in added.items())
