"""The log store that the settings name."""

from __future__ import annotations

import functools
from pathlib import Path
from urllib.parse import urlsplit

from aaiclick.config import settings
from aaiclick.errors import MissingExtra
from aaiclick.orchestration.log_stores.contract import LogStore
from aaiclick.orchestration.log_stores.directory import LocalDirectory


def log_store() -> LogStore:
    """Return the log store of this process. Raises MissingExtra if the address needs the extra s3."""
    config = settings()
    return _opened(config.log_store, config.log_dir)


def is_local_directory() -> bool:
    """Return whether logs stay in the directory in which runs write them."""
    return not settings().log_store


@functools.lru_cache(8)
def _opened(address: str, log_dir: Path) -> LogStore:
    if not address:
        return LocalDirectory(log_dir)
    if not address.startswith("s3://"):
        from aaiclick.orchestration.log_stores.shared_directory import SharedDirectory  # here: few have one

        return SharedDirectory(Path(address))
    try:
        from aaiclick.orchestration.log_stores.objects import ObjectStore  # here: it needs an extra
    except ImportError as error:
        raise MissingExtra(what="AAICLICK_LOG_STORE with s3://", package="obstore", extra="s3") from error
    parts = urlsplit(address)
    return ObjectStore(parts.netloc, parts.path.strip("/"))
