"""Column types that mean the same on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Computed, DateTime, Integer, String, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

Id = BigInteger().with_variant(Integer, "sqlite")
"""A snowflake id. On SQLite, INTEGER is 64 bits wide, and as a primary key it is the row id."""

SQLITE_TIME = "%Y-%m-%d %H:%M:%S.%f"


class _MariadbLongText(UserDefinedType[str]):
    """MariaDB's LONGTEXT, without importing SQLAlchemy's dialect of MariaDB, which is slow to load."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "LONGTEXT"


LongText = Text().with_variant(_MariadbLongText(), "mysql", "mariadb")


class _PostgresJson(UserDefinedType[str]):
    """PostgreSQL's `json`: the server checks it and, unlike `jsonb`, keeps the order of keys."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "JSON"


class JsonText(TypeDecorator[str]):
    """JSON as text: what is read back is what was written, to the letter."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return _PostgresJson()
        if dialect.name in ("mysql", "mariadb"):
            return _MariadbLongText()
        return Text()


class UtcTime(TypeDecorator[datetime]):
    """A datetime in UTC with its zone set, to the microsecond. Naive datetimes are refused."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return DateTime(timezone=True)
        if dialect.name in ("mysql", "mariadb"):
            from sqlalchemy.dialects import mysql  # imported here: slow to load, and used for MariaDB only

            return mysql.DATETIME(fsp=6)
        return String(26)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value!r} has no zone")
        value = value.astimezone(UTC)
        if dialect.name == "postgresql":
            return value
        if dialect.name in ("mysql", "mariadb"):
            return value.replace(tzinfo=None)
        return value.strftime(SQLITE_TIME)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class ReadAs(Computed):
    """Another name of a column, for people who query the table in SQL; PostgreSQL has to store it."""

    inherit_cache = True


@compiles(ReadAs, "postgresql")
def _stored(element: ReadAs, compiler: Any, **options: Any) -> str:
    return f"GENERATED ALWAYS AS ({element.sqltext}) STORED"
