"""Statements that a test compiled stay compiled for the next one, which has an engine of its own.

SQLAlchemy keeps compiled statements for each engine. With an engine for each test that was a quarter of the CPU time of
all tests that ask a database. Engines share them here where their dialects are equal in all that they know.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy.engine import Dialect, Engine
from sqlalchemy.util import LRUCache

KEPT = 4_000


class Compiled:
    """The cache of one engine."""

    def __init__(self, shared: LRUCache[Any, Any]) -> None:
        self._shared = shared
        self._kinds: dict[int, tuple[Any, ...]] = {}

    def get(self, key: tuple[Any, ...]) -> Any:
        return self._shared.get((self._kind(key[0]), *key[1:]))

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        self._shared[self._kind(key[0]), *key[1:]] = compiled

    def clear(self) -> None:
        """What others compiled is of no concern to whoever asks this."""

    def _kind(self, dialect: Dialect) -> tuple[Any, ...]:
        if id(dialect) not in self._kinds:  # statements are compiled when it knows its server
            self._kinds[id(dialect)] = kind_of(dialect)
        return self._kinds[id(dialect)]


def kind_of(dialect: Dialect) -> tuple[Any, ...]:
    """All that a dialect knows; objects of its own, such as compilers, follow from that."""
    known = vars(dialect).items()
    plain = (str, int, float, bool, tuple, frozenset, type(None))
    facts = (
        (name, value if isinstance(value, plain) else _named(value)) for name, value in known if not _is_own(value)
    )
    return (type(dialect), *sorted((name, repr(value)) for name, value in facts))


def _named(value: Any) -> object:
    """A function that the dialect made for itself is another one each time."""
    name = getattr(value, "__qualname__", "")
    return name if "<locals>" in name else id(value)


def _is_own(value: Any) -> bool:
    return type(value).__module__.startswith(("sqlalchemy", "weakref")) or isinstance(value, dict | set)


@contextmanager
def sharing() -> Iterator[None]:
    """Engines that are made in the block share."""
    shared: LRUCache[Any, Any] = LRUCache(KEPT)

    def keep(engine: Engine, own: object) -> None:
        vars(engine)["_compiled_cache"] = None if own is None else Compiled(shared)

    with pytest.MonkeyPatch.context() as patch:
        found = property(lambda engine: vars(engine)["_compiled_cache"], keep)
        patch.setattr(Engine, "_compiled_cache", found, raising=False)
        yield
