"""Where this process sends the logs of its runs, as the settings say."""

from __future__ import annotations

from aaiclick.config import settings
from aaiclick.orchestration.execution.logs.log_targets import LogTarget, ServerTarget, StoreTarget
from aaiclick.orchestration.execution.logs.shipping import Making
from aaiclick.orchestration.log_stores.opening import is_local_directory, log_store


def log_target() -> Making | None:
    """Return what makes the target of logs: the server, or the log store; None if they stay in AAICLICK_LOG_DIR."""
    if settings().coordinator_urls:
        return _server
    if is_local_directory():
        return None
    store = log_store()  # now: that it needs an extra is said before anything runs
    return lambda: StoreTarget(store)


def _server() -> LogTarget:
    from aaiclick.orchestration.coordinator.http.opening import calls_of, credentials_of  # here: few workers need it

    return ServerTarget(calls_of(settings(), credentials_of(settings())))
