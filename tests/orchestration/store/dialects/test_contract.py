"""The pieces that the dialects share."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy.exc import DBAPIError

from aaiclick.errors import ConfigError
from aaiclick.orchestration.store.dialects import dialect_of
from aaiclick.orchestration.store.dialects.contract import Dialect, ReadyKey, causes
from aaiclick.orchestration.store.dialects.mariadb import MariadbDialect
from aaiclick.orchestration.store.dialects.postgres import PostgresDialect
from aaiclick.orchestration.store.dialects.sqlite import SqliteDialect

DIALECTS = (SqliteDialect, PostgresDialect, MariadbDialect)


def test_the_causes_of_an_error_are_what_was_wrapped_and_what_came_before() -> None:
    first, wrapped = KeyError("first"), ValueError("wrapped")
    wrapped.__cause__ = first
    outer = DBAPIError("SELECT 1", {}, wrapped)
    assert causes(outer) == [outer, wrapped, first]


def test_causes_that_go_round_end() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert causes(one) == [one, two]


def test_places_in_the_queue_are_ordered_by_rank_job_and_task() -> None:
    keys = [ReadyKey(0, 1, 1), ReadyKey(-5, 9, 9), ReadyKey(0, 1, 2), ReadyKey(0, 2, 0)]
    assert sorted(keys) == [ReadyKey(-5, 9, 9), ReadyKey(0, 1, 1), ReadyKey(0, 1, 2), ReadyKey(0, 2, 0)]


@pytest.mark.parametrize("kind", DIALECTS)
def test_every_dialect_answers_every_question(kind: type[Dialect]) -> None:
    asked = {name for name in vars(Dialect) if not name.startswith("_")} | set(Dialect.__annotations__)
    assert [name for name in asked if not hasattr(kind, name)] == []


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("sqlite+aiosqlite:///x.db", SqliteDialect),
        ("postgresql+asyncpg://h/d", PostgresDialect),
        ("mariadb+asyncmy://h/d", MariadbDialect),
        ("mysql+asyncmy://h/d", MariadbDialect),
    ],
)
def test_a_url_names_its_dialect(url: str, kind: type[Dialect]) -> None:
    assert isinstance(dialect_of(url), kind)


def test_a_url_of_another_database_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError, match="scheme is one of") as caught:
        dialect_of("oracle://me:secret@h/d")
    assert "secret" not in str(caught.value)


def test_a_local_state_loads_neither_the_mapper_nor_the_other_databases() -> None:
    heavy = {"sqlalchemy.orm", "sqlalchemy.ext.asyncio", "asyncpg", "asyncmy"}
    heavy |= {f"aaiclick.orchestration.store.dialects.{name}" for name in ("postgres", "mariadb")}
    steps = "import aaiclick.orchestration.context; from aaiclick.orchestration.store.dialects import dialect_of"
    asked = f"{heavy!r} & set(sys.modules)"
    code = f"import sys; {steps}; dialect_of('sqlite+aiosqlite:///x'); print(sorted({asked}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
