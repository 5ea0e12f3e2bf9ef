"""Local databases are copies of the first one: SQLAlchemy takes twenty times as long to write it anew.

Only where the test's own process opens a database that is not there: processes that it starts make theirs as ever, and
so do the tests of `ensure_local` itself.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest

from aaiclick.orchestration.store import database, schema
from aaiclick.orchestration.store.connecting import SQLITE_WAIT_S, create_file, in_our_words, refuse_foreign
from aaiclick.urls import sqlite_file

EMPTY = "SELECT count(*) FROM sqlite_master"


async def ensure_local(url: str, template: Path) -> bool:
    """As `schema.ensure_local`, under the same lock."""
    file = sqlite_file(url)
    if file is None or (file.is_file() and file.stat().st_size > 0):
        return await schema.ensure_local(url)
    if not template.exists():  # noqa: ASYNC240 (a look at a local file)
        await schema.ensure_local(f"sqlite+aiosqlite:///{template}")
    refuse_foreign(url)
    with in_our_words(url):
        if copied(template, file):
            return True
        create_file(file)
    with closing(sqlite3.connect(file, timeout=SQLITE_WAIT_S, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        is_empty = connection.execute(EMPTY).fetchone() == (0,)
        if is_empty:
            for statement in statements(template):
                connection.execute(statement)
        connection.execute("COMMIT")
    return is_empty


def copied(template: Path, file: Path) -> bool:
    """Let the file appear with all that is in it, unless somebody makes it at the same time."""
    copy = file.with_name(f"{file.name}-{uuid4().hex}")
    create_file(copy)
    try:
        copy.write_bytes(content(template))
        os.link(copy, file)
    except FileExistsError:
        return False
    finally:
        copy.unlink()
    return True


@cache
def content(template: Path) -> bytes:
    return template.read_bytes()


@cache
def statements(template: Path) -> list[str]:
    with closing(sqlite3.connect(template)) as connection:
        return [each for each in connection.iterdump() if each not in ("BEGIN TRANSACTION;", "COMMIT;")]


@contextmanager
def ready(template: Path) -> Iterator[None]:
    """In the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "ensure_local", lambda url: ensure_local(url, template))
        yield
