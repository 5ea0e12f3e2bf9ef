"""The database URLs and the local directories of this process, as the settings give them.

The directories are created on demand, and refused if another user owns them or may write them.
"""

from __future__ import annotations

import os
from pathlib import Path

from aaiclick.config import settings
from aaiclick.errors import ConfigError
from aaiclick.file_owners import fault_around, fault_of


def get_root() -> Path:
    """Return the base directory of all local state (AAICLICK_LOCAL_ROOT), without creating it."""
    return settings().local_root


def get_db_url() -> str:
    """Return the SQLAlchemy URL of the state database. It may contain a password: see `mask_url`."""
    return settings().sql_url


def get_ch_url() -> str:
    """Return the URL of the data database. It may contain a password: see `mask_url`."""
    return settings().ch_url


def is_chdb() -> bool:
    """Return whether the data is stored in the embedded chdb."""
    return settings().is_chdb


def is_sqlite() -> bool:
    """Return whether the state is stored in a SQLite file."""
    return settings().is_sqlite


def is_local() -> bool:
    """Return whether neither database is a server: state in SQLite and data in chdb."""
    return settings().is_local


def get_logs_dir() -> str:
    """Return the directory of the task logs; create it if it is missing."""
    return str(_ensure_directory(settings().log_dir, "AAICLICK_LOG_DIR"))


def ensure_root() -> Path:
    """Return the base directory of all local state; create it if it is missing."""
    return _ensure_directory(get_root(), "AAICLICK_LOCAL_ROOT")


def check_root() -> None:
    """Raise ConfigError if the base directory belongs to another user or is writable by others.

    A missing directory passes; `ensure_root` creates it later.
    """
    _refuse_foreign(get_root(), "AAICLICK_LOCAL_ROOT")


def _refuse_foreign(directory: Path, setting: str) -> None:
    if (fault := fault_of(directory) or fault_around(directory)) is not None:
        raise ConfigError(setting=setting, value=str(directory), rule=fault.cause, hint=fault.hint)


def _ensure_directory(directory: Path, setting: str) -> Path:
    """Create the directory with mode 0700 if it is missing; raise ConfigError with the setting's name if unusable."""
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
