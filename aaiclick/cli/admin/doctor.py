"""`aaiclick doctor`: what is installed, what is set, and whether it works."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from aaiclick import __version__
from aaiclick.cli.afar import afar
from aaiclick.cli.event_loop import wait_for
from aaiclick.cli.output import AsJson, cell, show_facts, show_json, show_table, show_text

if TYPE_CHECKING:
    from aaiclick.config import Settings
    from aaiclick.representations.health import HealthAnswer, ReconcilerAnswer

PACKAGES = (
    "aiosqlite",
    "alembic",
    "chdb-core",
    "clickhouse-connect",
    "msgspec",
    "prometheus-client",
    "pyarrow",
    "rich",
    "sqlalchemy",
    "typer",
    "typing-extensions",
)
EXTRAS = {
    "postgres": "asyncpg",
    "mariadb": "asyncmy",
    "redis": "redis",
    "s3": "obstore",
    "server": "fastapi",
    "otel": "opentelemetry-api",
}
"""What each brings."""

NOT_WELL = 1
UNREACHABLE = 6


def doctor(as_json: AsJson = False) -> None:
    """Show versions and settings, and check that everything works.

    Exit with 0 if all checks pass, 1 if a check fails, 6 if the database cannot be reached.
    """
    from aaiclick.config import settings  # here, to keep start-up light

    versions, shown = _versions(), _shown(settings())
    if not as_json:
        show_facts({name: _in_words(fact) for name, fact in versions.items()} | shown)
    found, reconcilers = wait_for(_check())
    if as_json:
        show_json({**versions, "settings": shown, **found, "healthy": found["ok"]})  # `healthy` is the older name
    else:
        _show_checks(found)
        _show_reconcilers(reconcilers)
    raise typer.Exit(_exit_code(found))


async def _check() -> tuple[HealthAnswer, Sequence[Any]]:
    """Check the databases, or ask the server how it is; and the reconcilers, with the ages of their runs."""
    if (api := afar()) is not None:
        told = await api.health()
        return told, [_with_age(each) for each in told["reconcilers"]]
    from aaiclick.orchestration.queries.health import health_check  # here, to keep start-up light
    from aaiclick.representations.health import health_answer  # here, to keep start-up light

    health = await health_check()
    return health_answer(health), health.reconcilers


def _with_age(told: ReconcilerAnswer) -> SimpleNamespace:
    """Return a reconciler as a server told of it; the age of its run is by this machine's clock."""
    from datetime import UTC, datetime  # here, to keep start-up light

    ran_at, trouble_at = (text and datetime.fromisoformat(text) for text in (told["ran_at"], told["trouble_at"]))
    age_s = max(0.0, (datetime.now(UTC) - ran_at).total_seconds()) if isinstance(ran_at, datetime) else None
    return SimpleNamespace(**{**told, "ran_at": ran_at, "trouble_at": trouble_at, "ran_s_ago": age_s})


def _versions() -> dict[str, Any]:
    packages = {name: _version(name) for name in PACKAGES}
    extras = {extra: _version(package) for extra, package in EXTRAS.items()}
    python = ".".join(map(str, sys.version_info[:3]))
    return {"aaiclick": __version__, "python": python, "packages": packages, "extras": extras}


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # slow, and only this command needs it

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _in_words(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{name} {version or '(not installed)'}" for name, version in fact.items())
    return str(fact)


def _shown(settings: Settings) -> dict[str, Any]:
    """All settings; of those that are not to be printed, only addresses, without their passwords."""
    from aaiclick.urls import mask_url  # here, to keep start-up light

    shown: dict[str, Any] = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if not field.repr:
            value = mask_url(value) if field.name.endswith("_url") else "***"
        elif isinstance(value, tuple):
            value = ", ".join(value)
        shown[field.name] = value if value is None or isinstance(value, int | float) else str(value)
    return shown


def _show_checks(health: HealthAnswer) -> None:
    width = max(len(check["name"]) for check in health["checks"])
    for check in health["checks"]:
        state = "FAIL" if check["state"] == "fail" else check["state"]
        line = f"{state:<4}  {check['name']:<{width}}  {check['detail']}"
        show_text(cell(f"{line}. {check['hint']}" if check["hint"] else line))


def _show_reconcilers(reconcilers: Sequence[Any]) -> None:
    """What the leader does, how often it did, and what that took; nothing before anybody has led."""
    columns = ("reconciler", "last run", "runs", "done", "failed", "seconds", "last trouble")
    rows = [
        (
            each.name,
            "" if each.ran_s_ago is None else f"{each.ran_s_ago:.0f} s ago",
            each.runs,
            each.done,
            each.failures,
            f"{each.seconds:.3f}",
            each.trouble and f"{each.trouble_at:%Y-%m-%d %H:%M:%S}: {each.trouble}",
        )
        for each in reconcilers
    ]
    if rows:
        show_text("")
        show_table(columns, rows)


def _exit_code(health: HealthAnswer) -> int:
    if not all(check["ok"] for check in health["checks"] if check["name"] == "database"):
        return UNREACHABLE
    return 0 if health["ok"] else NOT_WELL
