"""How tables are made on a cluster. No server can be had here: what is run is the embedded engine as a cluster of
itself, without ON CLUSTER and replicas; the statements with these are compared with files, and parsed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import Context
from aaiclick.data.clients.contract import Rows
from aaiclick.data.clients.tables import ALONE, NewTable, Tables, find_tables
from aaiclick.data.provenance.operation_log import _NEW
from aaiclick.data.sql.quoting import text
from aaiclick.data.tables.lifetimes import make_anew
from aaiclick.data.typing.schema import Schema
from aaiclick.errors import ConfigError, DataRefused, DataUnreachable

GOLDEN = Path(__file__).parents[1] / "golden"
ROOT = Path(__file__).resolve().parents[3]


class Recorder:
    """Notes what is asked; answers every look with the columns of one table."""

    def __init__(self, tables: Tables, refuses: str = "", comment: str = "") -> None:
        self.tables, self.asked = tables, list[str]()
        self._refuses, self._comment = refuses, comment

    async def command(self, sql: str, settings: Any = None) -> None:
        self.asked.append(sql)
        if self._refuses and self._refuses in sql:
            raise DataRefused(code=57, cause="it exists")

    async def rows(self, sql: str, settings: Any = None) -> Rows:
        self.asked.append(sql)
        if "DISTINCT comment" in sql:
            return Rows(["comment"], ["String"], [[self._comment]])
        if "sorting_key" in sql:
            return Rows(["sorting_key"], ["String"], [["aai_id"]])
        return Rows(["name", "type"], ["String", "String"], [["aai_id", "it's"], ["UInt64", "Nullable(Int64)"]])

    async def make(self, sql: str, look: str, settings: Any = None) -> Rows:
        await self.command(sql)
        return await self.rows(look)


def server(kind: str = "Atomic", shared: int = 0) -> Any:
    """What a server tells of itself."""
    return lambda _: Rows([], [], [["work"], [kind], [shared], [["other", "prod"]]])


PLACES = {
    "alone": ALONE,
    "cluster": find_tables("prod", server()),
    "replicated_database": find_tables("prod", server("Replicated")),
    "shared": find_tables("prod", server("Shared", 1)),
}


async def statements(tables: Tables) -> list[str]:
    """What the life of tables asks of ClickHouse."""
    client: Any = Recorder(tables)
    schema = Schema.from_fields({"it's": "Nullable(Int64)", "b": "Map(String, Array(Int8))"}, ordered=True)
    new = NewTable("p_x", "`aai_id`", schema.table_comment(), schema.column_definitions(), schema.names, tokens=True)
    await tables.make(client, new)
    await tables.make_as(client, NewTable("c1_1", "tuple()", "{}", tokens=True), "SELECT 1 AS `it's`")
    await tables.make(client, NewTable("c1_2", "`row`", "{}", granule=64), "SELECT 1 AS `it's`")
    await tables.make_once(client, _NEW)
    await tables.add_columns(client, _NEW.name, {"columns.how": "Array(String)"})
    for each in tables.in_place("c1_1"):
        await client.command(each)
    await tables.make_like(client, "p_x", "c1_3", "{}")
    await tables.copy(client, "p_x", "t1_1", "{}")
    await tables.look(client, "name", "startsWith(name, 'c1_')")
    await client.rows(f"SELECT name, comment, total_rows FROM {tables.sizes} AND name = 'p_x'")
    await tables.drop(client, "p_x")
    return list(client.asked)


@pytest.mark.parametrize("place", PLACES)
async def test_the_statements_are_those_of_the_file(place: str) -> None:
    golden = GOLDEN / f"tables_{place}.sql"
    assert "".join(f"{each};\n" for each in await statements(PLACES[place])) == golden.read_text()


@pytest.mark.parametrize("place", PLACES)
async def test_clickhouse_reads_every_statement(context: Context, place: str) -> None:
    for each in await statements(PLACES[place]):
        found = await context.client.rows(f"SELECT formatQuerySingleLine({text(each)})")
        again = await context.client.rows(f"SELECT formatQuerySingleLine({text(found.columns[0][0])})")
        assert found.columns == again.columns


async def test_every_setting_of_a_cluster_is_known_to_clickhouse(context: Context) -> None:
    for place in ("cluster", "shared"):
        found = await context.client.rows("SELECT 1", PLACES[place].settings)
        assert found.columns[0][0] == 1


def test_a_cluster_that_the_server_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match="Did you mean prod") as refused:
        find_tables("prd", server())
    assert "The server knows: other, prod" in str(refused.value)


def test_objects_have_versions_where_one_machine_has_all_tables() -> None:
    assert [place for place, tables in PLACES.items() if tables.keeps_versions] == ["alone"]


async def test_what_was_made_of_a_table_that_is_refused_goes() -> None:
    client: Any = Recorder(PLACES["cluster"], refuses="CREATE TABLE `local_", comment="mine")
    with pytest.raises(DataRefused):
        await client.tables.make(client, NewTable("p_x", "tuple()", "mine", "a Int8", ["a"]))
    assert [each for each in client.asked if each.startswith("DROP")] == [
        "DROP TABLE IF EXISTS `local_p_x` ON CLUSTER `prod` SYNC",
        "DROP TABLE IF EXISTS `p_x` ON CLUSTER `prod` SYNC",
    ]


async def test_the_table_of_another_stays_when_its_name_is_wanted() -> None:
    client: Any = Recorder(PLACES["cluster"], refuses="CREATE TABLE", comment="theirs")
    with pytest.raises(DataRefused):
        await client.tables.make(client, NewTable("p_x", "tuple()", "mine", "a Int8", ["a"]))
    assert not [each for each in client.asked if each.startswith("DROP")]


async def test_a_table_whose_answer_was_lost_is_looked_for_on_all_machines() -> None:
    client: Any = Recorder(PLACES["cluster"])
    tries = iter([DataUnreachable(cause="lost"), None])

    async def make() -> None:
        if (error := next(tries)) is not None:
            raise error

    await make_anew(client, "p_x", "mark", make)
    assert "clusterAllReplicas('prod', system.tables)" in client.asked[0]
    assert client.asked[1].startswith("DROP TABLE IF EXISTS `local_p_x` ON CLUSTER")


def test_equal_rows_are_of_one_shard_whatever_their_order() -> None:
    found: Any = PLACES["cluster"]
    made = found.creations(NewTable("p_x", "`aai_id`", "", "aai_id UInt64, a Int8", ["aai_id", "a"]))
    assert re.search(r"cityHash64\(tuple\(`a`\)\)", made[0])


# ---------------------------------------------------------------- the embedded engine as a cluster of itself


def run(cluster: str, steps: str, directory: Path) -> Any:
    directory.chmod(0o700)
    command = [sys.executable, "-m", "tests.support.cluster_engine", cluster, f"tests.support.cluster_steps.{steps}"]
    done = subprocess.run([*command, str(directory)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def test_objects_live_on_a_cluster_as_elsewhere(tmp_path: Path) -> None:
    found = run("one", "lives", tmp_path)
    none = "on a ClickHouse cluster"
    local, standing = found.pop("engines")
    assert local[0] == "local_p_orders"
    assert local[1].startswith("MergeTree")
    assert standing[1] == "Distributed('one', 'default', 'local_p_orders', cityHash64(tuple(id, city, price)))"
    assert "already exists" in found.pop("taken")
    assert found == {
        "added": 1,
        "sorted": {"id": [1, 2, 5], "city": ["Rome", "Oslo", "Bern"], "price": [1.5, 2.5, 7.0]},
        "inserted": 1,
        "count": 4,
        "in order": [[3, 1, 2], [4, 2, 3]],
        "copied in order": [3, 1, 2],
        "numbers": [0, 1, 2, 3, 4],
        "size": True,
        "stored": [["dear", 4, True], ["orders", 5, True]],
        "clone": [5, 15],
        "blob": "a long text",
        "log": ["create", "insert", "materialize"],
        "refused": "DataRefused",
        "added come last": [3, 1, 2, 0],
        "versions": [["create", "p_orders"]],
        "opened": 5,
        "no versions": [
            f"The Object dear cannot be changed by full refresh: {none}",
            f"The Object orders cannot be changed by incremental: {none}",
            f"The Object orders cannot be changed by upsert: {none}",
            f"The Object orders cannot be changed by rollback: {none}",
        ],
        "deleted": True,
        "objects": ["orders"],
        "left": ["aai_oplog", "local_aai_oplog", "local_p_orders", "p_orders"],
    }


def test_an_answer_over_two_shards_is_that_over_all_rows(tmp_path: Path) -> None:
    for name, found, wanted in run("two", "answers", tmp_path):
        assert (name, found) == (name, wanted)
        assert found or name == "never", name
