"""The databases that can hold the state."""

from __future__ import annotations

from aaiclick.errors import ConfigError
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.dialects.mariadb import MariadbDialect
from aaiclick.orchestration.store.dialects.postgres import PostgresDialect
from aaiclick.orchestration.store.dialects.sqlite import SqliteDialect
from aaiclick.urls import mask_url

_BY_SCHEME: dict[str, type[Dialect]] = {
    "sqlite": SqliteDialect,
    "postgresql": PostgresDialect,
    "mariadb": MariadbDialect,
    "mysql": MariadbDialect,
}


def dialect_of(url: str) -> Dialect:
    """The dialect for this URL."""
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme not in _BY_SCHEME:
        known = ", ".join(sorted(_BY_SCHEME))
        raise ConfigError(
            setting="AAICLICK_SQL_URL", value=mask_url(url), rule=f"its scheme is one of {known}", hint=""
        )
    return _BY_SCHEME[scheme]()
