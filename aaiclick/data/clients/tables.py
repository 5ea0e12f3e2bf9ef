"""How tables are made, dropped and looked up where a client leads: in one engine, or on the machines of a cluster.

On a cluster, the rows of a table are in a local table of each shard, whose replicas keep the same; the table itself is
the Distributed one, through which everything is read and written. Nobody else knows the difference.
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
"""What the names of local tables begin with."""

TOKENS = "non_replicated_deduplication_window = 1000"
"""Of tables that know which tokens were used."""

REPLICATED_TOKENS = "replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800"

NAMES_SHOWN = 20


class NewTable(NamedTuple):
    """A table that is about to be made."""

    name: str
    order: str
    """By what it is sorted."""
    comment: str = ""
    columns: str = ""
    """What stands in the parentheses; without it, it has the columns of the query that fills it."""
    names: Sequence[str] = ()
    """The names of these columns."""
    tokens: bool = False
    granule: int = 0
    """So many rows are read at least."""
    engine: str = "MergeTree"
    partition: str = ""
    """By what its pieces are told apart."""


@dataclass(frozen=True)
class Tables:
    """Those of one engine, or of a service whose machines share all tables."""

    engine: str = "MergeTree"
    window: str = TOKENS
    settings: Mapping[str, Any] | None = None
    """What statements are sent with."""

    @property
    def shares_pieces(self) -> bool:
        """Whether a table takes over the rows of another without copying them."""
        return True

    @property
    def keeps_versions(self) -> bool:
        """Whether Objects may have versions: one machine renames tables, and sees all inserts that are under way."""
        return self.engine == "MergeTree"

    @property
    def sizes(self) -> str:
        """What stands after FROM to ask how large tables are, and for their comments."""
        return "system.tables WHERE database = currentDatabase()"

    async def look(self, client: DataClient, what: str, which: str) -> Rows:
        """What system.tables tells of some tables, also of those that only some machines have."""
        return await client.rows(f"SELECT {what} FROM system.tables WHERE database = currentDatabase() AND {which}")  # noqa: S608 (quoted)

    async def make(self, client: DataClient, new: NewTable, query: str = "", settings: Settings | None = None) -> None:
        """Make a table, with the rows that a query gives. A name that is taken is refused."""
        await client.command(self._creation(new, query), settings)

    async def make_as(self, client: DataClient, new: NewTable, query: str, settings: Settings | None = None) -> Rows:
        """The same; gives the columns that the table then has."""
        return await client.make(self._creation(new, query), _look(new.name), settings)

    async def make_once(self, client: DataClient, new: NewTable) -> Rows:
        """Make a table unless it is there; gives the columns that it has."""
        return await client.make(self._creation(new, if_missing=True), _look(new.name))

    async def add_columns(self, client: DataClient, table: str, added: Mapping[str, str]) -> None:
        """Add columns to a table, those that it lacks."""
        await client.command(f"ALTER TABLE {quoting.name(table)} {_added(added)}")

    def in_place(self, table: str) -> list[str]:
        """Statements after which rows that are added to an ordered table of a query come after those that are there."""
        return [f"ALTER TABLE {quoting.name(table)} MODIFY COLUMN {IN_PLACE}"]  # columns of a query have no defaults

    async def make_like(self, client: DataClient, source: str, table: str, comment: str) -> None:
        """Make an empty table with the same columns."""
        await client.command(
            f"CREATE TABLE {quoting.name(table)} AS {quoting.name(source)} COMMENT {quoting.text(comment)}"
        )

    async def copy(self, client: DataClient, source: str, copy: str, comment: str) -> None:
        """Make a table with the same columns and rows."""
        await client.command(
            f"CREATE TABLE {quoting.name(copy)} CLONE AS {quoting.name(source)} COMMENT {quoting.text(comment)}"
        )

    async def drop(self, client: DataClient, table: str) -> None:
        """Drop a table that may not be there."""
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
    """Those of a cluster: each is a local table on every machine, and one that stands for all of them."""

    cluster: str = ""
    database: str = "default"
    on: str = ""
    """What tells a statement to run on every machine; nothing where the database sees to that itself."""

    @property
    def shares_pieces(self) -> bool:
        return False  # a shard would take over its own, and a replica may not have them yet

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
        """A machine that is away is not asked."""
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
        return []  # they were made so

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
        """The rows are copied: see `shares_pieces`."""
        await self.make_like(client, source, copy, comment)
        await client.command(f"INSERT INTO {quoting.name(copy)} SELECT * FROM {quoting.name(source)}")  # noqa: S608 (quoted)

    async def drop(self, client: DataClient, table: str) -> None:
        """The local ones first: what is left of a drop that fails is seen, and dropped again."""
        for each in (f"{LOCAL}{table}", table):
            await client.command(f"DROP TABLE IF EXISTS {quoting.name(each)}{self.on} SYNC")

    def creations(self, new: NewTable, *, if_missing: bool = False) -> list[str]:
        """The statements that make a table: first the one that stands for all, whose name may be taken.

        Equal rows are of one shard: whoever sends rows again, with their token, sends each to where it was before.
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
        """Whether what is there of this name, on whichever machines, was made by this call."""
        found = await self.look(client, "comment", f"name = {quoting.text(new.name)}")
        return bool(new.comment) and list(found.columns[0]) == [new.comment]


ALONE = Tables()
"""Those of one engine."""

SHARED_SETTINGS = {"select_sequential_consistency": 1}

CLUSTER_SETTINGS = {
    "insert_quorum": "auto",  # rows are there once most replicas have them
    "insert_quorum_parallel": 0,
    "insert_quorum_timeout": 60_000,
    "select_sequential_consistency": 1,  # a replica that lacks such rows says so, instead of reading without them
    "distributed_foreground_insert": 1,  # rows are in their shards when the insert is answered
    "distributed_product_mode": "global",  # what a table is compared or joined with is read from all shards
    "distributed_ddl_output_mode": "throw_only_active",  # a machine that is away makes up for it later
    "distributed_ddl_task_timeout": 60,
    "skip_unavailable_shards": 0,
    "max_insert_threads": 1,  # a second thread would be in the way of the first one's quorum
    "parallel_distributed_insert_select": 0,  # a shard by itself would sort, group and number its own rows only
    "optimize_distributed_group_by_sharding_key": 0,
}


def find_tables(cluster: str, ask: Callable[[str], Rows]) -> Tables:
    """How tables are made on a cluster of this name, as the machine that is asked knows it; it blocks."""
    found = ask(
        "SELECT currentDatabase(), (SELECT engine FROM system.databases WHERE name = currentDatabase()),"
        " (SELECT count() FROM system.table_engines WHERE name = 'SharedMergeTree'),"
        " (SELECT groupUniqArray(cluster) FROM system.clusters)"
    )
    (database, kind, shared, known) = (column[0] for column in found.columns)
    if cluster not in known:
        told = ", ".join(map(shown, sorted(known)[:NAMES_SHOWN])) or "none"
        hint = f"{did_you_mean(cluster, known)} It knows: {told}.".lstrip()
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
