"""`aaiclick doctor`: what is installed, what is set, and whether it works."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

from aaiclick import __version__
from aaiclick.cli.loop import wait_for
from aaiclick.cli.output import AsJson, cell, show_facts, show_json, show_table, show_text

if TYPE_CHECKING:
    from aaiclick.config import Settings
    from aaiclick.orchestration.health import Check, Health

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
)
EXTRAS = {
    "postgres": "asyncpg",
    "mariadb": "asyncmy",
    "redis": "redis",
    "server": "fastapi",
    "otel": "opentelemetry-api",
}
"""What each brings."""

NOT_WELL = 1
UNREACHABLE = 6


def doctor(as_json: AsJson = False) -> None:
    """Show versions and settings, and check that everything works.

    Exits with 0 if all is well, 1 if a check fails, 6 if the database cannot be reached.
    """
    from aaiclick.config import settings  # here, to keep start-up light
    from aaiclick.orchestration.health import health_check  # here, to keep start-up light

    versions, shown = _versions(), _shown(settings())
    if not as_json:
        show_facts({name: _in_words(fact) for name, fact in versions.items()} | shown)
    health = wait_for(health_check())
    if as_json:
        show_json(versions | {"settings": shown} | _to_json(health))
    else:
        _show_checks(health)
        _show_reconcilers(health)
    raise typer.Exit(_exit_code(health))


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


def _state(check: Check) -> str:
    if not check.ok:
        return "FAIL"
    return "warn" if check.hint else "ok"


def _show_checks(health: Health) -> None:
    width = max(len(check.name) for check in health.checks)
    for check in health.checks:
        line = f"{_state(check):<4}  {check.name:<{width}}  {check.detail}"
        show_text(cell(f"{line}. {check.hint}" if check.hint else line))


def _show_reconcilers(health: Health) -> None:
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
        for each in health.reconcilers
    ]
    if rows:
        show_text("")
        show_table(columns, rows)


def _to_json(health: Health) -> dict[str, Any]:
    checks = [
        {"name": check.name, "state": _state(check).lower(), "detail": check.detail, "hint": check.hint or None}
        for check in health.checks
    ]
    reconcilers = [
        {
            "name": each.name,
            "ran_at": each.ran_at and each.ran_at.isoformat(),
            "runs": each.runs,
            "done": each.done,
            "failures": each.failures,
            "seconds": each.seconds,
            "is_failing": each.is_failing,
            "trouble": each.trouble,
            "trouble_at": each.trouble_at and each.trouble_at.isoformat(),
        }
        for each in health.reconcilers
    ]
    return {"healthy": bool(health), "checks": checks, "reconcilers": reconcilers}


def _exit_code(health: Health) -> int:
    if not health["database"].ok:
        return UNREACHABLE
    return 0 if health else NOT_WELL
