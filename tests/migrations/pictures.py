"""What a database says of its own schema, in a form that can be compared."""

from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from aaiclick.orchestration.store.connecting import connect

Picture = dict[str, list[tuple[Any, ...]]]

SQLITE = {
    "columns": """
        SELECT t.name, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk
        FROM sqlite_master t, pragma_table_xinfo(t.name) c WHERE t.type = 'table' ORDER BY 1, 2""",
    "tables": """
        SELECT name, CASE wr WHEN 1 THEN 'without rowid' ELSE 'with rowid' END
        FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite%' ORDER BY 1""",
    "indexes": "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'index' ORDER BY 1, 2",
    "views": "SELECT name, sql FROM sqlite_master WHERE type = 'view' ORDER BY 1",
}
"""Not the statements: a column that was added later stands behind the keys there."""

POSTGRES = {
    "columns": """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
               pg_get_expr(d.adbin, d.adrelid)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1, 2""",
    "tables": """
        SELECT relname, relkind::text, reloptions FROM pg_class
        WHERE relnamespace = 'public'::regnamespace ORDER BY 1""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY 1, 2""",
    "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1",
}

MARIADB_TABLES = """SELECT table_name FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY 1"""
MARIADB_VIEWS = """SELECT table_name, REPLACE(view_definition, CONCAT('`', DATABASE(), '`.'), ''), security_type
    FROM information_schema.views WHERE table_schema = DATABASE() ORDER BY 1"""


async def picture(url: str) -> Picture:
    """All tables with their columns, keys, indexes and options; and all views."""
    async with connect(url, write=False) as connection:
        if connection.dialect.name == "sqlite":
            return await ask(connection, SQLITE)
        if connection.dialect.name == "postgresql":
            return await ask(connection, POSTGRES)
        names = await connection.scalars(text(MARIADB_TABLES))
        tables = {name: f"SHOW CREATE TABLE `{name}`" for name in names}
        return await ask(connection, {**tables, "views": MARIADB_VIEWS})


async def ask(connection: AsyncConnection, questions: dict[str, str]) -> Picture:
    answers = {}
    for name, question in questions.items():
        rows = await connection.execute(text(question))
        answers[name] = [tuple(one_line(value) for value in row) for row in rows]
    return answers


def one_line(value: Any) -> Any:
    """How a statement was laid out is no part of the schema, nor in which order indexes were made."""
    if not isinstance(value, str):
        return value
    if value.startswith("CREATE VIEW"):
        return " ".join(value.split())
    lines = [" ".join(line.split()).rstrip(",") for line in value.strip().splitlines()]
    return " ".join(sorted(lines, key=lambda line: line if " KEY `" in f" {line}" else ""))


async def run(url: str, *statements: str) -> None:
    """Execute and commit."""
    async with connect(url, write=True) as connection:
        for statement in statements:
            await connection.exec_driver_sql(statement)
        await connection.commit()
