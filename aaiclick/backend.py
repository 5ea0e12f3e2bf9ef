"""Which databases this process uses, and where its files are."""

from __future__ import annotations

import os
from pathlib import Path

from aaiclick.config import settings
from aaiclick.errors import ConfigError
from aaiclick.file_owners import fault_around, fault_of


def get_root() -> Path:
    """The base directory for all local state."""
    return settings().local_root


def get_db_url() -> str:
    """The address of the state, for SQLAlchemy; it may hold a password: see `mask_url`."""
    return settings().sql_url


def get_ch_url() -> str:
    """The address of the data; it may hold a password: see `mask_url`."""
    return settings().ch_url


def is_chdb() -> bool:
    """Whether the data is kept by the embedded chdb."""
    return settings().is_chdb


def is_sqlite() -> bool:
    """Whether the state is kept in a SQLite file."""
    return settings().is_sqlite


def is_local() -> bool:
    """Whether nothing but this machine is needed."""
    return settings().is_local


def get_logs_dir() -> str:
    """The directory of the tasks' logs; it is made if it is not there."""
    return str(_ensure_directory(settings().log_dir, "AAICLICK_LOG_DIR"))


def ensure_root() -> Path:
    """The base directory for all local state; it is made if it is not there."""
    return _ensure_directory(get_root(), "AAICLICK_LOCAL_ROOT")


def check_root() -> None:
    """Refuse a base directory that another user owns, or that others may write; one that is missing is made later."""
    _refuse_foreign(get_root(), "AAICLICK_LOCAL_ROOT")


def _refuse_foreign(directory: Path, setting: str) -> None:
    if (fault := fault_of(directory) or fault_around(directory)) is not None:
        raise ConfigError(setting=setting, value=str(directory), rule=fault.cause, hint=fault.hint)


def _ensure_directory(directory: Path, setting: str) -> Path:
    """Make the directory, for its owner only, or say which setting to change."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(directory, setting, error.strerror or str(error)) from error
    _refuse_foreign(directory, setting)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise _unusable(directory, setting, "Permission denied")
    return directory


def _unusable(directory: Path, setting: str, cause: str) -> ConfigError:
    rule = f"the directory cannot be made or written: {cause}"
    return ConfigError(setting=setting, value=str(directory), rule=rule, hint=f"Set {setting} to another directory.")
