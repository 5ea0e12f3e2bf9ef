"""The databases that can hold the state: one dialect each, imported on first use, since each import takes time."""

from __future__ import annotations

from importlib import import_module

from aaiclick.errors import ConfigError
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.urls import mask_url

_BY_SCHEME = {
    "sqlite": ("sqlite", "SqliteDialect"),
    "postgresql": ("postgres", "PostgresDialect"),
    "mariadb": ("mariadb", "MariadbDialect"),
    "mysql": ("mariadb", "MariadbDialect"),
}
"""The module and the class of the dialect, by the scheme of the URL."""


def dialect_of(url: str) -> Dialect:
    """Return the dialect for this URL. Raise ConfigError if its scheme is not known."""
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme not in _BY_SCHEME:
        known = ", ".join(sorted(_BY_SCHEME))
        raise ConfigError(
            setting="AAICLICK_SQL_URL", value=mask_url(url), rule=f"its scheme is one of {known}", hint=""
        )
    module, name = _BY_SCHEME[scheme]
    dialect: Dialect = getattr(import_module(f"{__name__}.{module}"), name)()
    return dialect
