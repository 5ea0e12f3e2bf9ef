"""A schema that this code cannot use is refused, with both versions and what to do."""

import re
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy.engine import make_url

from aaiclick.errors import SchemaError
from aaiclick.orchestration.store import schema
from aaiclick.orchestration.store.connecting import connect
from tests.migrations.pictures import picture, run
from tests.servers.databases import Databases

Ask = Callable[[str], Awaitable[None]]

NEXT = "9999"
RUN = re.escape("Run: aaiclick migrate upgrade head")
OF_ITS_OWN = re.escape("Give aaiclick a database of its own.")


async def require_current(url: str) -> None:
    async with connect(url, write=False) as connection:
        await schema.require_current(connection)


@pytest.fixture(params=[schema.check, require_current], ids=["check", "require_current"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """The command's question, and the one that is asked at every start."""
    found: Ask = request.param
    return found


async def test_the_newest_is_accepted(ask: Ask, migrated_sql_url: str) -> None:
    await ask(migrated_sql_url)


async def test_an_empty_database_is_refused(ask: Ask, databases: Databases) -> None:
    with databases.empty() as url:
        await run(url)
        with pytest.raises(SchemaError, match=f"is not there yet, .* needs {schema.HEAD}. {RUN}"):
            await ask(url)


async def test_an_older_schema_is_refused(ask: Ask, migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = schema.HEAD
    monkeypatch.setattr(schema, "REVISIONS", (*schema.REVISIONS, NEXT))
    monkeypatch.setattr(schema, "HEAD", NEXT)
    with pytest.raises(SchemaError, match=f"is {before}, .* needs {NEXT}. {RUN}"):
        await ask(migrated_sql_url)


async def test_a_newer_schema_is_refused(ask: Ask, sql_url: str) -> None:
    await schema.upgrade(sql_url)
    await run(sql_url, "UPDATE aaiclick_schema SET version_num = '9999'")
    with pytest.raises(SchemaError, match=f"is 9999, .* needs {schema.HEAD}. Install a newer aaiclick"):
        await ask(sql_url)
    with pytest.raises(SchemaError, match="is 9999"):
        await schema.upgrade(sql_url)


async def test_a_version_that_we_never_made_is_refused(ask: Ask, sql_url: str) -> None:
    await schema.upgrade(sql_url)
    await run(sql_url, "UPDATE aaiclick_schema SET version_num = 'ae1027a6acf'")
    with pytest.raises(SchemaError, match=f"is ae1027a6acf .which is not a version of aaiclick.*{OF_ITS_OWN}"):
        await ask(sql_url)
    with pytest.raises(SchemaError, match="ae1027a6acf"):
        await schema.upgrade(sql_url)


async def test_two_versions_at_once_are_refused(ask: Ask, sql_url: str) -> None:
    await schema.upgrade(sql_url)
    await run(sql_url, "INSERT INTO aaiclick_schema (version_num) VALUES ('9999')")
    with pytest.raises(SchemaError, match="9999"):
        await ask(sql_url)


async def test_tables_of_the_same_names_are_not_taken_for_ours(ask: Ask, sql_url: str) -> None:
    await run(sql_url, "CREATE TABLE jobs (id INTEGER)", "CREATE TABLE tasks (id INTEGER)")
    before = await picture(sql_url)
    refusal = f"is not aaiclick's .*: jobs, tasks.*needs {schema.HEAD}. {OF_ITS_OWN}"
    with pytest.raises(SchemaError, match=refusal):
        await ask(sql_url)
    with pytest.raises(SchemaError, match=refusal):
        await schema.upgrade(sql_url)
    assert await picture(sql_url) == before


async def test_other_tools_may_live_in_the_same_database(ask: Ask, sql_url: str) -> None:
    await run(
        sql_url,
        "CREATE TABLE customers (id INTEGER)",
        "CREATE TABLE alembic_version (version_num VARCHAR(32))",
        "INSERT INTO alembic_version VALUES ('ae1027a6acf')",
    )
    with pytest.raises(SchemaError, match="is not there yet"):
        await ask(sql_url)
    await schema.upgrade(sql_url)
    await ask(sql_url)


async def test_a_first_migration_that_did_not_finish_is_refused(ask: Ask, sql_url: str) -> None:
    await schema.upgrade(sql_url)
    await run(sql_url, "DELETE FROM aaiclick_schema", "DROP TABLE ready")
    with pytest.raises(SchemaError, match=f"incomplete.*needs {schema.HEAD}. {RUN}"):
        await ask(sql_url)


async def test_a_check_notices_missing_tables(sql_url: str) -> None:
    await schema.upgrade(sql_url)
    await run(sql_url, "DROP TABLE ready")
    with pytest.raises(SchemaError, match=f"is {schema.HEAD} without its tables ready.*Restore"):
        await schema.check(sql_url)


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_a_password_is_never_shown(sql_url: str) -> None:
    url = make_url(sql_url).set(password="hunter2").render_as_string(hide_password=False)
    with pytest.raises(SchemaError) as refused:
        await schema.check(url)
    assert "hunter2" not in str(refused.value)
    assert "***" in str(refused.value)


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_a_user_who_may_not_create_tables_is_told_so(dialect: str, sql_url: str) -> None:
    url = make_url(sql_url)
    database = url.database if dialect == "postgres" else "readable"  # MariaDB lets all do all in test_…
    before, after = {
        "postgres": (
            ["CREATE ROLE reader LOGIN PASSWORD 'pw'", "REVOKE CREATE ON SCHEMA public FROM PUBLIC"],
            ["DROP ROLE reader"],
        ),
        "mariadb": (
            [
                "CREATE DATABASE readable",
                "CREATE USER reader IDENTIFIED BY 'pw'",
                "GRANT SELECT ON readable.* TO reader",
            ],
            ["DROP DATABASE readable", "DROP USER reader"],
        ),
    }[dialect]
    reader = url.set(database=database, username="reader", password="pw").render_as_string(hide_password=False)
    await run(sql_url, *before)
    try:
        with pytest.raises(SchemaError, match=r"The database refused a step: .*denied"):
            await schema.upgrade(reader)
    finally:
        await run(sql_url, *after)
